package seal

import "testing"

func TestOnlyTheRightKeyAndContextOpen(t *testing.T) {
	mine, other := newKey(t), newKey(t)
	sealed, err := Seal(mine.Public(), []byte("hunter2"), "node-1 nginx:1")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := mine.Open(sealed, "node-1 nginx:1"); err != nil || string(text) != "hunter2" {
		t.Errorf("the owner of the key reads %q, %v", text, err)
	}
	for name, open := range map[string]func() ([]byte, error){
		"another key":     func() ([]byte, error) { return other.Open(sealed, "node-1 nginx:1") },
		"another context": func() ([]byte, error) { return mine.Open(sealed, "node-1 nginx:2") },
		"a changed text": func() ([]byte, error) {
			return mine.Open(append(sealed[:len(sealed)-1:len(sealed)-1], sealed[len(sealed)-1]^1), "node-1 nginx:1")
		},
		"a part":  func() ([]byte, error) { return mine.Open(sealed[:20], "node-1 nginx:1") },
		"nothing": func() ([]byte, error) { return mine.Open(nil, "node-1 nginx:1") },
	} {
		if text, err := open(); err == nil {
			t.Errorf("%s reads %q", name, text)
		}
	}
}

func TestWhatIsNoKeyIsRefused(t *testing.T) {
	for name, key := range map[string][]byte{"nothing": nil, "too short": []byte("key"), "zeros": make([]byte, 32)} {
		if _, err := Seal(key, []byte("hunter2"), ""); err == nil {
			t.Errorf("%s is taken for a key", name)
		}
	}
}

func newKey(t *testing.T) *Key {
	t.Helper()
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}
