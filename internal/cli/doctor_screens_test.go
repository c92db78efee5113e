package cli

import (
	"testing"

	"github.com/seed-69ecc383/kruise/internal/cli/doctor"
)

func TestTakeoverScreen(t *testing.T) {
	for name, facts := range map[string]doctor.Facts{
		"takeover-nothing": {Now: noon},
		"takeover": {Now: noon, Server: "v1.36.3", Minor: 36, Older: doctor.Older{
			Managers: []string{"kruise-system/kruise-controller-manager: openkruise/kruise-manager:v1.8.0"}, Objects: map[string]int{"CloneSet.apps.kruise.io": 3},
			Updating: []string{"shop/web-4xq"}, Protected: []string{"Namespace shop"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p, out := shown()
			p.takeoverText(doctor.Plan(facts))
			golden(t, name, out.String())
		})
	}
}
