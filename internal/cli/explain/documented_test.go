package explain

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumented checks that each code is in the documentation, and in a test that shows it.
func TestDocumented(t *testing.T) {
	read := func(pattern string) string {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, files, err)
		}
		var text strings.Builder
		for _, name := range files {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(content)
		}
		return text.String()
	}
	docs, tests := read("../../../docs/kubectl-kruise.md"), read("*_test.go")+read("../*_test.go")
	codes := regexp.MustCompile(`\b(\w+) Code = "(\w+)"`).FindAllStringSubmatch(read("codes.go"), -1)
	if len(codes) < 20 {
		t.Fatalf("only %d codes were found", len(codes))
	}
	for _, code := range codes {
		if !strings.Contains(docs, "`"+code[2]+"`") {
			t.Errorf("docs/kubectl-kruise.md does not have %s", code[2])
		}
		if !regexp.MustCompile(`\b` + code[1] + `\b`).MatchString(tests) {
			t.Errorf("no test shows %s", code[1])
		}
	}
}
