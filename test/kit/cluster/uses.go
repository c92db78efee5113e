package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-69ecc383/kruise/test/kit/audit"
)

// usesFolder is the variable of the environment that names the folder where suites record which rights were used, for test/rights. Without
// it nothing is recorded.
const usesFolder = "KRUISE_USES"

// Unaudited are the arguments of clusters whose audit log nobody reads unless uses are recorded.
func Unaudited() []string {
	if os.Getenv(usesFolder) != "" {
		return nil
	}
	return []string{"--audit=false"}
}

// TestedUse is the use of a right, and the test in which it was seen: the folder of its suite and, where that is known, its name.
type TestedUse struct {
	audit.Use
	Test string
}

// recordUses writes what service accounts did in a cluster that is about to end. It does nothing unless somebody wants to know.
func (c *Cluster) recordUses() error {
	folder := os.Getenv(usesFolder)
	if folder == "" || c.options.Dir == "" {
		return nil
	}
	uses, err := audit.Uses(filepath.Join(c.options.Dir, "logs", "audit.log"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // it never came up
	}
	if err != nil {
		return fmt.Errorf("reading which rights were used: %w", err)
	}
	suite, err := suite()
	if err != nil {
		return err
	}
	found := map[TestedUse]bool{}
	for _, u := range uses {
		t := TestedUse{Use: u, Test: suite}
		if c.options.TestOf != nil {
			if name := c.options.TestOf(u.Namespace); name != "" {
				t.Test += " " + name
			}
		}
		if !slices.Contains([]string{"kruise-system", "kruise-rollout", "kruise-daemon-config", "default"}, t.Namespace) {
			t.Namespace = "" // one of a test
		}
		found[t] = true
	}
	all := []TestedUse{}
	for t := range found {
		all = append(all, t)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, "*.json")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// suite returns the folder of the package that is tested, from the root of the repository.
func suite() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return filepath.Rel(root, here)
}
