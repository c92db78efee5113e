package cluster

import "testing"

func TestNoPortIsGivenTwice(t *testing.T) {
	given := map[string]bool{}
	for range 100 {
		ports, err := freePorts(3)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if given[port] {
				t.Errorf("port %s was given twice", port)
			}
			given[port] = true
		}
	}
}
