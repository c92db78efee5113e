package docs

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-69ecc383/kruise/internal/cli"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/manager"
	"github.com/seed-69ecc383/kruise/internal/node"
	"github.com/seed-69ecc383/kruise/internal/rolloutmanager"
	"github.com/seed-69ecc383/kruise/test/kit/pages"
)

// TestCommands: what blocks and texts tell a reader to call is there: targets of make, programs, files, packages, commands and flags of
// kubectl-kruise and of the managers, and types of objects. Flags of kubectl itself are asked of it in test/kinds/cli.
func TestCommands(t *testing.T) {
	b := read(t)
	check := newChecker(b)
	n := 0
	for _, p := range b.pages {
		if p.File == "CHANGELOG.md" {
			continue // it tells of what was
		}
		for at, c := range p.Commands() {
			n++
			if err := check.command(c.Words); err != nil {
				t.Errorf("%s: %s: %v", at, strings.Join(c.Words, " "), err)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d commands were found", n)
	}
}

// checker knows what can be called.
type checker struct {
	*book
	makefile string
	types    map[string]bool
	targets  map[string]bool
	flags    map[string][]string // by the name of a program
}

func newChecker(b *book) *checker {
	c := &checker{book: b, makefile: b.file("Makefile"), types: b.types(), targets: map[string]bool{}, flags: map[string][]string{}}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(c.makefile, -1) {
		c.targets[m[1]] = true
	}
	for name, options := range map[string]interface{ Bind(*flag.FlagSet) }{
		"kruise-manager": &manager.Options{}, "kruise-daemon": &node.Options{}, "kruise-rollout": &rolloutmanager.Options{},
	} {
		set := flag.NewFlagSet(name, flag.ContinueOnError)
		options.Bind(set)
		set.VisitAll(func(f *flag.Flag) { c.flags[name] = append(c.flags[name], "--"+f.Name) })
	}
	return c
}

// others are programs that readers have, or that this test need not know.
func others() []string {
	return []string{
		"apt-get", "bin/helm", "cat", "cd", "cosign", "ctr", "curl", "do", "docker", "done", "kustomize", "export", "for", "git", "go", "grep", "helm", "install", "jq", "k9s", "ln", "mkdir",
		"openssl", "promtool", "sed", "sha256sum", "sleep", "tar", "xargs", "yq", "krew", "argocd", "flux",
	}
}

func (c *checker) command(words []string) error {
	if words[0] == "sudo" {
		words = words[1:]
	}
	name, args := strings.TrimPrefix(words[0], "bin/"), words[1:]
	switch {
	case name == "make":
		return c.make(args)
	case name == "kubectl":
		return c.kubectl(args)
	case name == "kubectl-kruise":
		return kruise(args)
	case name == "kruise-local":
		return c.local(args)
	case c.flags[name] != nil:
		return c.program(name, args)
	case name == "go":
		return c.packages(args)
	case strings.HasPrefix(name, "hack/"):
		if !c.exists(name) {
			return fmt.Errorf("there is no %s", name)
		}
	case !slices.Contains(others(), words[0]):
		return fmt.Errorf("nobody knows the program %s: correct it, or add it to the programs that readers have in this test", words[0])
	}
	return nil
}

func (c *checker) make(args []string) error {
	for _, arg := range args {
		if variable, _, is := strings.Cut(arg, "="); is {
			if !regexp.MustCompile(`(?m)^` + variable + ` .?=|\$\(` + variable + `\)|\(or \$\(` + variable).MatchString(c.makefile) {
				return fmt.Errorf("the Makefile knows no variable %s", variable)
			}
		} else if !c.targets[arg] && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(arg)+`:`).MatchString(c.makefile) {
			return fmt.Errorf("the Makefile has no target %s", arg)
		}
	}
	return nil
}

// local checks the arguments of kruise-local, which is a module of its own, against its sources.
func (c *checker) local(args []string) error {
	for i, arg := range args {
		if arg == "kubectl" {
			return c.kubectl(args[i+1:])
		}
		if name, isFlag := strings.CutPrefix(arg, "--"); isFlag {
			if name, _, _ = strings.Cut(name, "="); !c.inSources("localcluster", `"`+name+`"`) {
				return fmt.Errorf("kruise-local has no flag --%s", name)
			}
		}
	}
	if verb := firstWord(args, "--name", "--dir"); verb != "" && !c.inSources("localcluster/cli", `"`+verb) {
		return fmt.Errorf("kruise-local has no verb %s", verb)
	}
	return nil
}

func (c *checker) inSources(folder, text string) bool {
	c.Helper()
	found := false
	err := filepath.WalkDir(filepath.Join(c.root, folder), func(name string, _ os.DirEntry, err error) error {
		if err != nil || found || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		source, err := os.ReadFile(name)
		found = found || bytes.Contains(source, []byte(text))
		return err
	})
	if err != nil {
		c.Fatal(err)
	}
	return found
}

func (c *checker) program(name string, args []string) error {
	if len(args) > 0 && args[0] == "check-uninstall" {
		return nil
	}
	for _, arg := range (pages.Command{Words: append([]string{name}, args...)}).Flags() {
		if !slices.Contains(c.flags[name], "--"+strings.TrimLeft(arg, "-")) {
			return fmt.Errorf("%s has no flag %s", name, arg)
		}
	}
	return nil
}

func (c *checker) packages(args []string) error {
	for _, arg := range args {
		if name, is := strings.CutPrefix(strings.TrimSuffix(arg, "/..."), "./"); is && !c.exists(name) && !c.exists("localcluster/"+name) {
			return fmt.Errorf("there is no package %s", name)
		}
	}
	return nil
}

// kruise has kubectl-kruise read a command, without carrying it out.
func kruise(args []string) error {
	if len(args) == 0 {
		return nil
	}
	var out bytes.Buffer
	streams := cli.Streams{In: &out, Out: &out, Err: &out, Getenv: func(string) string { return "" }}
	with := append(slices.Clone(args), "--help")
	if code := cli.Main(context.Background(), append([]string{"kubectl-kruise"}, with...), streams); code != 0 {
		return fmt.Errorf("kubectl kruise says: %s", strings.TrimSpace(out.String()))
	}
	// A command that only has others below it shows its help, whatever is behind it.
	group := regexp.MustCompile(`(?m)^ +kubectl kruise(.*) \[command\]$`).FindStringSubmatch(out.String())
	if words := plain(args); len(group) == 2 && len(words) > len(strings.Fields(group[1])) {
		if wrong := words[len(strings.Fields(group[1]))]; !isPlaceholder(wrong) {
			return fmt.Errorf("kubectl kruise%s has no command %s", group[1], wrong)
		}
	}
	return nil
}

func isPlaceholder(word string) bool {
	return strings.ToUpper(word) == word || strings.Contains(word, "…")
}

// firstWord returns the first argument that is no flag; flags that are named take the word behind them.
func firstWord(args []string, taking ...string) string {
	for i, arg := range args {
		if !strings.HasPrefix(arg, "-") && (i == 0 || !slices.Contains(taking, args[i-1])) {
			return arg
		}
	}
	return ""
}

// TestFlagsInText: a flag that a text names is one of our programs, or of those that are spoken of.
func TestFlagsInText(t *testing.T) {
	b := read(t)
	c := newChecker(b)
	for _, p := range b.pages {
		if p.File == "CHANGELOG.md" {
			continue
		}
		for _, span := range p.Spans {
			name, _, _ := strings.Cut(strings.Fields(span.Text + " ")[0], "=")
			if !regexp.MustCompile(`^--[a-z][a-z0-9-]+$`).MatchString(name) {
				continue
			}
			ours := c.inSources("localcluster", `"`+name[2:]+`"`) || c.inSources("internal/cli", `"`+name[2:]+`"`) || c.inSources("hack", `"`+name[2:]+`"`)
			for _, flags := range c.flags {
				ours = ours || slices.Contains(flags, name)
			}
			if !ours && !slices.Contains(foreignFlags(), name) {
				t.Errorf("%s:%d: no program of ours has the flag %s: correct it, or add it to the flags of others in this test", p.File, span.Line, name)
			}
		}
	}
}

// foreignFlags are flags of kubectl, Helm, kubelets and API servers that pages speak of.
func foreignFlags() []string {
	return []string{
		"--admission-control-config-file", "--all", "--as", "--cascade", "--context", "--dry-run", "--force", "--image-credential-provider-config",
		"--kubeconfig", "--no-hooks", "--previous", "--reuse-values", "--server-side", "--set", "--subresource", "--validate", "--wait", "--overwrite", "--for",
		"--force-conflicts", "--authentication-config", "--authorization-config", "--runtime-config", "--set-json", "--skip-crds", "--values",
	}
}

// TestFeatureGates: the gates that are set in pages are known.
func TestFeatureGates(t *testing.T) {
	b := read(t)
	c := newChecker(b)
	isGates := regexp.MustCompile(`(?:^|--feature-gates=|featureGates[=:] ?"?)((?:[A-Z][A-Za-z]+=(?:true|false),?)+)`)
	found := 0
	for _, p := range b.pages {
		texts := slices.Clone(p.Spans)
		for _, block := range p.Blocks {
			texts = append(texts, pages.Text{Line: block.Line, Text: block.Text})
		}
		for _, text := range texts {
			for _, m := range isGates.FindAllStringSubmatch(text.Text, -1) {
				found++
				for pair := range strings.SplitSeq(strings.Trim(m[1], ","), ",") {
					name, _, _ := strings.Cut(pair, "=")
					_, err := features.Parse(features.Sources{Flag: pair})
					if err != nil && !c.inSources("internal/rolloutmanager", `"`+name+`"`) && !slices.Contains(kubernetesGates(), name) {
						t.Errorf("%s:%d: there is no feature gate %s", p.File, text.Line, name)
					}
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d settings of gates were found", found)
	}
}

func kubernetesGates() []string { return []string{"APIServerIdentity", "InPlacePodVerticalScaling"} }

// TestMistakesAreFound: what is not there is not taken for something that is.
func TestMistakesAreFound(t *testing.T) {
	check := newChecker(read(t))
	for _, line := range []string{
		"make demos", "make demo KINDS=statefulset", "hack/real-node.sh", "bin/kruise-local ups", "bin/kruise-local up --fake-nodes 2", "kruise-manager --metrics-port=1",
		"kubectl get clones", "kubectl get ns,clon -A", "kubectl gett pods", "kubectl apply -f examples/no-such.yaml", "kubectl apply -k config/none",
		"kubectl explain asts.spec.partition --api-version=apps.kruise.io/v1beta1", "kubectl explain asts.spec --api-version=apps.kruise.io/v1",
		"kubectl kruise states cloneset/web", "kubectl kruise status cloneset/web --until 10m", "kubectl kruise rollout stats clone/web", "kubectl-kruise set images x",
		"bin/kruise-local kubectl get clones", "go test ./internal/nothing", "kustomise build", "kubectl rollout status clonesett/web",
	} {
		if check.command(strings.Fields(line)) == nil {
			t.Errorf("%s: nothing is found wrong with it", line)
		}
	}
}
