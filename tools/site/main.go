// Command site writes what is made of the documentation: the reference of the API into docs/reference, and the pages of the static site.
package main

import (
	"fmt"
	"os"

	"github.com/seed-69ecc383/kruise/tools/site/reference"
	"github.com/seed-69ecc383/kruise/tools/site/static"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "reference":
		return reference.Write(args[1])
	case len(args) == 3 && args[0] == "static":
		return static.Write(args[1], args[2])
	}
	return fmt.Errorf("%q: want reference ROOT, or static ROOT FOLDER", args)
}
