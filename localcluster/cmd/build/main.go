// Command build compiles kruise-local and shows how far it is: the first time, that is the whole of Kubernetes' control
// plane and takes minutes; after that, seconds.
//
//	cd localcluster && go run ./cmd/build ../bin/kruise-local
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	program = "./cmd/kruise-local"
	// manyPackages not yet compiled are worth a warning.
	manyPackages = 100
)

func main() {
	if err := build(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func build(args []string) error {
	if len(args) != 1 {
		return errors.New("want one argument: the path of the program to write")
	}
	stale, err := stalePackages()
	if err != nil {
		return err
	}
	if stale > manyPackages {
		fmt.Fprintf(os.Stderr, "Compiling Kubernetes and etcd, %d packages: this takes minutes, the first time\n", stale)
	}
	cmd := exec.Command("go", "build", "-v", "-o", args[0], program)
	output, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("watching the compiler: %w", err)
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the compiler: %w", err)
	}
	rest := follow(output, stale, begin)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("compiling: %w\n%s", err, rest)
	}
	fmt.Fprintf(os.Stderr, "%6.1fs  %s\n", time.Since(begin).Seconds(), filepath.Base(args[0]))
	return nil
}

// stalePackages counts the packages that are not in the build cache.
func stalePackages() (int, error) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if .Stale}}x{{end}}", program)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("listing packages: %w\n%s", err, complaint.String())
	}
	return bytes.Count(out, []byte("x\n")), nil
}

// follow prints a line now and then as the compiler names its packages, and returns the last lines it wrote.
func follow(output io.Reader, total int, begin time.Time) string {
	var last []byte
	var done int
	shown := begin
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		done++
		last = append(append(last, scanner.Bytes()...), '\n')
		last = last[max(0, len(last)-4096):]
		if time.Since(shown) >= 2*time.Second {
			shown = time.Now()
			fmt.Fprintf(os.Stderr, "%6.1fs  %d of %d packages\n", time.Since(begin).Seconds(), done, total)
		}
	}
	return string(last)
}
