package rollout

import "testing"

func TestBeyond(t *testing.T) {
	before := Counts{Revision: "new", Updated: 3, Ready: 5, UpdatedReady: 2, UpdatedAvailable: 1}
	for name, tc := range map[string]struct {
		change func(*Counts)
		want   bool
	}{
		"nothing has changed":              {func(*Counts) {}, false},
		"another revision is wanted":       {func(c *Counts) { c.Revision = "newer" }, true},
		"one more is updated":              {func(c *Counts) { c.Updated++ }, true},
		"one more is ready":                {func(c *Counts) { c.Ready++ }, true},
		"one more updated one is ready":    {func(c *Counts) { c.UpdatedReady++ }, true},
		"one more updated one is in use":   {func(c *Counts) { c.UpdatedAvailable++ }, true},
		"there are fewer of all":           {func(c *Counts) { *c = Counts{Revision: "new"} }, false},
		"one has come on, another is lost": {func(c *Counts) { c.Updated++; c.Ready-- }, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := before
			tc.change(&now)
			if got := now.Beyond(before); got != tc.want {
				t.Errorf("%+v is beyond %+v: %v, want %v", now, before, got, tc.want)
			}
		})
	}
}
