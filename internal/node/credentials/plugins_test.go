package credentials

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-cmp/cmp"

	"github.com/seed-69ecc383/kruise/internal/rules/registry"
)

// folder is a folder of programs, each a script, with a configuration.
type folder struct {
	*testing.T
	dir string
	now time.Time
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	return &folder{T: t, dir: t.TempDir(), now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
}

func (f *folder) write(name, text string, mode os.FileMode) string {
	f.Helper()
	path := filepath.Join(f.dir, name)
	// A process that another test starts meanwhile would inherit the open file for a moment, and no program runs while it is open for writing.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		f.Fatal(err)
	}
	return path
}

// provider is one of a configuration.
func provider(name, images string) string {
	return fmt.Sprintf("{name: %s, matchImages: [%s], defaultCacheDuration: 10m, apiVersion: credentialprovider.kubelet.k8s.io/v1, args: [get], env: [{name: WHO, value: me}]}", name, images)
}

func (f *folder) load(providers ...string) (*Plugins, error) {
	f.Helper()
	file := f.write("config.yaml", "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders: ["+strings.Join(providers, ", ")+"]\n", 0o600)
	return LoadPlugins(PluginConfig{File: file, Folder: f.dir, Now: func() time.Time { return f.now }})
}

func (f *folder) must(providers ...string) *Plugins {
	f.Helper()
	p, err := f.load(providers...)
	if err != nil {
		f.Fatal(err)
	}
	return p
}

// says is a script that notes what it is asked, and answers.
func (f *folder) says(name, cache, auth string) {
	f.Helper()
	f.write(name, fmt.Sprintf(`#!/bin/sh
echo "$WHO $1 $(cat)" >> %s
echo '{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1",%s,"auth":%s}'
`, filepath.Join(f.dir, name+".asked"), cache, auth), 0o700)
}

// asked returns what a program was asked so far.
func (f *folder) asked(name string) []string {
	f.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, name+".asked"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		f.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func users(t *testing.T, p *Plugins, repository string) (names []string) {
	t.Helper()
	found, err := p.For(t.Context(), named(t, repository))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found {
		names = append(names, c.Username+":"+c.Password)
	}
	return names
}

func TestTheProtocol(t *testing.T) {
	f := newFolder(t)
	f.says("cloud", `"cacheKeyType":"Registry"`, `{"*.example.com":{"username":"all","password":"1"},"a.example.com":{"username":"a","password":"2"},"a.example.com/team":{"username":"team","password":"3"},"b.example.com":{"username":"b","password":"4"}}`)
	p := f.must(provider("cloud", `"*.example.com"`))
	if diff := cmp.Diff([]string{"team:3", "a:2", "all:1"}, users(t, p, "a.example.com/team/app")); diff != "" {
		t.Errorf("credentials, the most specific first (-want +got):\n%s", diff)
	}
	want := `me get {"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"a.example.com/team/app"}`
	if diff := cmp.Diff([]string{want}, f.asked("cloud")); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if got := users(t, p, "nginx"); len(got) > 0 || len(f.asked("cloud")) != 1 {
		t.Errorf("of an image that is none of its business it is asked, and says %v", got)
	}
}

func TestAnswersAreKept(t *testing.T) {
	const auth = `{"*.example.com":{"username":"u","password":"p"}}`
	for name, tc := range map[string]struct {
		cache string
		// then is after how long it is asked of which image again.
		then       time.Duration
		repository string
		runs       int
	}{
		"for the image":                  {`"cacheKeyType":"Image"`, 9 * time.Minute, "a.example.com/one", 1},
		"not for another image":          {`"cacheKeyType":"Image"`, 0, "a.example.com/two", 2},
		"for the registry":               {`"cacheKeyType":"Registry"`, 9 * time.Minute, "a.example.com/two", 1},
		"not for another registry":       {`"cacheKeyType":"Registry"`, 0, "b.example.com/two", 2},
		"for everything":                 {`"cacheKeyType":"Global"`, 9 * time.Minute, "b.example.com/two", 1},
		"no longer than nothing said":    {`"cacheKeyType":"Global"`, 10 * time.Minute, "a.example.com/one", 2},
		"for as long as the answer says": {`"cacheKeyType":"Global","cacheDuration":"1h"`, 59 * time.Minute, "a.example.com/one", 1},
		"and no longer":                  {`"cacheKeyType":"Global","cacheDuration":"1h"`, time.Hour, "a.example.com/one", 2},
		"not at all":                     {`"cacheKeyType":"Image","cacheDuration":"0s"`, 0, "a.example.com/one", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			f.says("cloud", tc.cache, auth)
			p := f.must(provider("cloud", `"*.example.com"`))
			users(t, p, "a.example.com/one")
			f.now = f.now.Add(tc.then)
			if got := users(t, p, tc.repository); len(got) != 1 {
				t.Errorf("credentials %v", got)
			}
			if got := len(f.asked("cloud")); got != tc.runs {
				t.Errorf("it was asked %d times, want %d", got, tc.runs)
			}
		})
	}
}

func TestManyPullsAskOnce(t *testing.T) {
	f := newFolder(t)
	f.says("cloud", `"cacheKeyType":"Registry"`, `{"a.example.com":{"username":"u","password":"p"}}`)
	p := f.must(provider("cloud", "a.example.com"))
	var pulls sync.WaitGroup
	for i := range 20 {
		pulls.Go(func() { _, _ = p.For(t.Context(), named(t, fmt.Sprint("a.example.com/app-", i))) }) // what it says is of no matter here
	}
	pulls.Wait()
	if got := len(f.asked("cloud")); got != 1 {
		t.Errorf("it was asked %d times, want once", got)
	}
}

// TestProgramsThatDoNotServe: they are told of, and what the others say stands.
func TestProgramsThatDoNotServe(t *testing.T) {
	const head = `{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1"`
	for name, tc := range map[string]struct{ script, want string }{
		"it fails":             {"echo the token is secret >&2; exit 3", "exit status 3"},
		"it hangs":             {"exec sleep 60", "it did not answer in time"},
		"it leaves one behind": {"sleep 60 & exec sleep 60", "it did not answer in time"},
		"it says nothing":      {"exit 0", "its answer is not JSON of a CredentialProviderResponse"},
		"it speaks otherwise":  {`echo '{"kind":"X","apiVersion":"v2"}'`, "its answer is a X of v2"},
		"it says not for what": {"echo '" + head + `,"auth":{}}'`, `its answer has cacheKeyType ""`},
		"it says nonsense":     {"echo '" + head + `,"cacheKeyType":"Image","auth":{"[":{"username":"u","password":"secret"}}}'`, `its answer: "[" is no pattern of images`},
		"it says too much":     {"head -c 1100000 /dev/zero", "its answer is longer than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			f.write("bad", "#!/bin/sh\n"+tc.script+"\n", 0o700)
			f.says("good", `"cacheKeyType":"Image"`, `{"a.example.com":{"username":"u","password":"p"}}`)
			p := f.must(provider("bad", "a.example.com"), provider("good", "a.example.com"))
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			found, err := p.For(ctx, named(t, "a.example.com/app"))
			if diff := cmp.Diff([]registry.Credentials{{Username: "u", Password: "p"}}, found); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
			if err == nil || !strings.Contains(err.Error(), "asking credential provider plugin bad: "+tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells a secret: %v", err)
			}
			if ctx.Err() != nil {
				t.Error("no time is left for the pull")
			}
		})
	}
}

func TestConfigurations(t *testing.T) {
	for name, tc := range map[string]struct{ provider, want string }{
		"good":                      {provider("cloud", "a.example.com"), ""},
		"a path":                    {provider("../cloud", "a.example.com"), "the name is not that of a file in the folder of plugins"},
		"no name":                   {provider(`""`, "a.example.com"), "the name is not that of a file"},
		"twice":                     {provider("cloud", "a.example.com") + ", " + provider("cloud", "b.example.com"), `provider "cloud" is there twice`},
		"no images":                 {provider("cloud", ""), "matchImages is missing"},
		"a pattern without sense":   {provider("cloud", `"["`), "is no pattern of images"},
		"another protocol":          {strings.Replace(provider("cloud", "a.example.com"), "k8s.io/v1", "k8s.io/v1alpha1", 1), "want credentialprovider.kubelet.k8s.io/v1"},
		"nothing of time":           {strings.Replace(provider("cloud", "a.example.com"), "defaultCacheDuration: 10m, ", "", 1), "defaultCacheDuration is missing"},
		"less than no time":         {strings.Replace(provider("cloud", "a.example.com"), "10m", "-1s", 1), "defaultCacheDuration is -1s"},
		"tokens of accounts":        {strings.Replace(provider("cloud", "a.example.com"), "args:", "tokenAttributes: {serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true}, args:", 1), "tokenAttributes can't be had"},
		"a field that there is not": {strings.Replace(provider("cloud", "a.example.com"), "args:", "arguments:", 1), "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newFolder(t).load(tc.provider)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	p, err := LoadPlugins(PluginConfig{File: filepath.Join(t.TempDir(), "none.yaml"), Now: time.Now})
	if err != nil {
		t.Fatalf("without a file: %v", err)
	}
	if got := users(t, p, "nginx"); len(got) > 0 {
		t.Errorf("without a file there are credentials %v", got)
	}
	other := newFolder(t).write("other.yaml", "apiVersion: v1\nkind: Pod\n", 0o600)
	if _, err := LoadPlugins(PluginConfig{File: other}); err == nil || !strings.Contains(err.Error(), "it is a Pod of v1") {
		t.Errorf("of another kind: %v", err)
	}
}

func named(t *testing.T, repository string) reference.Named {
	t.Helper()
	image, err := reference.ParseNormalizedNamed(repository)
	if err != nil {
		t.Fatal(err)
	}
	return image
}
