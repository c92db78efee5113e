package pod

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOverlap(t *testing.T) {
	read := func(text string) *metav1.LabelSelector {
		if text == "" {
			return nil
		}
		s, err := metav1.ParseToLabelSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	cases := map[string]struct {
		a, b           string
		meet, sameKeys bool
	}{
		"the same value":               {"app=web", "app=web", true, true},
		"other values":                 {"app=web", "app=shop", false, true},
		"other labels":                 {"app=web", "tier=db", true, false},
		"a value of several":           {"app=web", "app in (web,shop)", true, true},
		"all but the value":            {"app=web", "app notin (web)", false, true},
		"any value":                    {"app=web", "app", true, true},
		"no such label":                {"app=web", "!app", false, true},
		"one of two labels is another": {"app=web,tier=db", "app=web,tier=ui", false, true},
		"one label more":               {"app=web,tier=db", "app=web", true, false},
		"everything":                   {"app=web", "", true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, pair := range [][2]*metav1.LabelSelector{{read(tc.a), read(tc.b)}, {read(tc.b), read(tc.a)}} {
				if meet, same := SelectorsOverlap(pair[0], pair[1]), SelectSameKeys(pair[0], pair[1]); meet != tc.meet || same != tc.sameKeys {
					t.Errorf("%v and %v meet: %v, ask for the same: %v", pair[0], pair[1], meet, same)
				}
			}
		})
	}
}
