package reason

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reasons.md")

const page = "../../../docs/reasons.md"

// TestPage checks that the documentation is that of the codes, and has each of them once.
func TestPage(t *testing.T) {
	source, err := os.ReadFile("reason.go")
	if err != nil {
		t.Fatal(err)
	}
	declared, said := map[string]bool{}, map[Code]bool{}
	for _, code := range regexp.MustCompile(`\b(\w+) +Code = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		if declared[code[2]] = true; code[1] != code[2] {
			t.Errorf("%s is written %s", code[1], code[2])
		}
	}
	for _, e := range All() {
		if said[e.Code] || !declared[string(e.Code)] || e.Holds == "" {
			t.Errorf("%q is said twice, or is no code, or nothing is said of it", e.Code)
		}
		said[e.Code] = true
	}
	if len(said) != len(declared) || len(said) < 30 {
		t.Errorf("%d codes are declared, and the page has %d", len(declared), len(said))
	}
	if *update {
		if err := os.WriteFile(page, []byte(Page()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != Page() {
		t.Errorf("docs/reasons.md is not current (%v): go test ./internal/rules/reason -update", err)
	}
}

// TestHoldsHaveCodes checks that whatever a plan holds back names its code.
func TestHoldsHaveCodes(t *testing.T) {
	found := 0
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, is := n.(*ast.CompositeLit)
			if !is || !isHold(literal.Type) || len(literal.Elts) == 0 {
				return true
			}
			found++
			for _, element := range literal.Elts {
				if field, is := element.(*ast.KeyValueExpr); is && field.Key.(*ast.Ident).Name == "Code" {
					return true
				}
			}
			t.Errorf("%s: a hold without a code", positions.Position(literal.Pos()))
			return true
		})
		return nil
	})
	if err != nil || found < 60 {
		t.Errorf("%d holds were found: %v", found, err)
	}
}

// isHold reports whether an expression is plan.Hold.
func isHold(e ast.Expr) bool {
	of, is := e.(*ast.SelectorExpr)
	if !is || of.Sel.Name != "Hold" {
		return false
	}
	in, is := of.X.(*ast.Ident)
	return is && in.Name == "plan"
}

func TestOfFailure(t *testing.T) {
	for message, want := range map[string]Code{
		`pods "web-0" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2`:          QuotaExceeded,
		`pods "web-0" is forbidden: failed quota: small: must specify cpu for: main`:                                  QuotaExceeded,
		`Internal error occurred: failed calling webhook "a.b.c": failed to call webhook: Post "x": no endpoints`:     WebhookDown,
		`admission webhook "a.b.c" denied the request: no`:                                                            AdmissionRefused,
		`pods "web-0" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed expression`: AdmissionRefused,
		`pods "web-0" is forbidden: violates PodSecurity "restricted:latest"`:                                         AdmissionRefused,
		`InPlaceOnly, but web-0 can't go to web-2 in place: its command differs`:                                      InPlaceRefused,
		`pods is forbidden: User "x" cannot create resource "pods"`:                                                   WriteFailed,
	} {
		if got := OfFailure(message); got != want {
			t.Errorf("%s: it is %s, want %s", message, got, want)
		}
	}
}

func TestRank(t *testing.T) {
	for code, outOfService := range map[Code]bool{
		NodeNotReady: true, WaitDeletion: true, WaitMinReady: true, InPlaceRefused: false, Updating: false, HeldByPartition: false, Nothing: false,
	} {
		if code.OutOfService() != outOfService {
			t.Errorf("%s: out of service is %v", code, !outOfService)
		}
	}
	if !HeldByPause.NeedsPerson() || WaitBudget.NeedsPerson() {
		t.Error("a person ends a pause, and no budget")
	}
}
