package certs

import (
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// TestManagersShareAFolder: of two that start at once one stores a CA, which both use.
func TestManagersShareAFolder(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	store := FileStore{Dir: t.TempDir()}
	issuer := Issuer{Store: store, Hosts: []string{"localhost"}, RenewBefore: DefaultRenewBefore, Log: logr.Discard(),
		Now: func() time.Time { return now }}
	first, err := issuer.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := issuer.Current(t.Context())
	if err != nil || string(first.CA) != string(second.CA) {
		t.Errorf("the second manager has another CA: %v", err)
	}
	if err := store.Save(t.Context(), map[string][]byte{keyCACert: []byte("late")}, ""); !errors.Is(err, ErrConflict) {
		t.Errorf("a manager that has read an empty folder stores its CA: %v", err)
	}
	if err := store.Save(t.Context(), map[string][]byte{keyCAKey: []byte("torn")}, string(first.CA)); err != nil {
		t.Fatal(err)
	}
	third, err := issuer.Current(t.Context())
	if err != nil || string(first.CA) == string(third.CA) {
		t.Errorf("a CA whose key does not fit is used: %v", err)
	}
}

func TestRenewBefore(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": DefaultRenewBefore, "45d": 45 * day, "6m": 180 * day, "1y": 365 * day, "9y": caLife / 2,
	} {
		if got, err := ParseRenewBefore(text); err != nil || got != want {
			t.Errorf("%q is %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"d", "0d", "45", "-1d", "1dd", "1h", "1.5d", " 1d"} {
		if got, err := ParseRenewBefore(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}

func TestBundles(t *testing.T) {
	one, err := newAuthority(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	two, err := newAuthority(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	both := string(two.certPEM) + string(one.certPEM)
	commented := "# ours\n" + string(one.certPEM)
	for name, tc := range map[string]struct{ got, want string }{
		"added to nothing":                 {string(Add(nil, one.certPEM)), string(one.certPEM)},
		"added to what can't be read":      {string(Add([]byte("x"), one.certPEM)), string(one.certPEM)},
		"added in front":                   {string(Add(one.certPEM, two.certPEM)), both},
		"added again":                      {string(Add([]byte(both), one.certPEM)), both},
		"alone":                            {string(Only([]byte(both), one.certPEM)), string(one.certPEM)},
		"alone already, in another form":   {string(Only([]byte(commented), one.certPEM)), commented},
		"added already, in another form":   {string(Add([]byte(commented), one.certPEM)), commented},
		"alone, in the place of another":   {string(Only(two.certPEM, one.certPEM)), string(one.certPEM)},
		"alone, in the place of nothing":   {string(Only(nil, one.certPEM)), string(one.certPEM)},
		"alone, where nothing is readable": {string(Only([]byte("x"), one.certPEM)), string(one.certPEM)},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %s, want %s", name, tc.got, tc.want)
		}
	}
}
