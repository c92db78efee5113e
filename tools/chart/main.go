// Command chart makes the Helm charts of Kruise from the manifests in config, so that there is one truth, and puts together what a release
// consists of besides programs and images.
//
//	chart generate -version v0.1.0                  write charts, and the tables of values in docs/install.md
//	chart release -version v0.1.0 -out DIR          write the charts as archives, install.yaml and install-rollouts.yaml
//	chart sums -out DIR                             write SHA256SUMS of what is in DIR
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// request is what is asked for.
type request struct {
	root, out, registry string
	version             version
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("say what to do: generate, release or sums")
	}
	var r request
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&r.root, "root", filepath.Join("..", ".."), "folder of the repository")
	flags.StringVar((*string)(&r.version), "version", "", "version of the release, such as v0.1.0")
	flags.StringVar(&r.out, "out", "", "folder of the release")
	flags.StringVar(&r.registry, "registry", "", "registry and folder of the images, such as registry.example.com/kruise; empty for none")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	var err error
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	switch args[0] {
	case "generate":
		return r.generate()
	case "release":
		return r.release()
	case "sums":
		return sums(r.out)
	default:
		return fmt.Errorf("%q is none of generate, release and sums", args[0])
	}
}

// charts returns both charts.
func (r request) charts() ([]chart, error) {
	if r.version == "" {
		return nil, errors.New("-version is missing")
	}
	one, err := kruise(r.root, r.version)
	if err != nil {
		return nil, err
	}
	other, err := rollout(r.root, r.version)
	return []chart{one, other}, err
}
