package claim

import (
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Instance ids have this many characters of an alphabet without vowels and without digits that look like letters.
const (
	idLength   = 5
	idAlphabet = "bcdfghjklmnpqrstvwxz2456789"
)

// Generator makes instance ids. With the same seed and the same used ids it makes the same ones.
type Generator struct {
	random *rand.Rand
	used   sets.Set[string]
}

// NewIDs returns a generator that makes none of the used ids, and none twice.
func NewIDs(seed int64, used sets.Set[string]) *Generator {
	return &Generator{random: rand.New(rand.NewPCG(uint64(seed), 0)), used: used.Clone()}
}

// Next returns the next id.
func (g *Generator) Next() string {
	for {
		id := make([]byte, idLength)
		for i := range id {
			id[i] = idAlphabet[g.random.IntN(len(idAlphabet))]
		}
		if !g.used.Has(string(id)) {
			g.used.Insert(string(id))
			return string(id)
		}
	}
}
