// Command plot draws what make bench KIND=scale has measured: a file of SVG for each dimension, with a panel for each quantity.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%q: want a file of figures and a folder for the plots", args)
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	measured, err := read(text)
	if err != nil {
		return fmt.Errorf("reading %s: %w", args[0], err)
	}
	if err := os.MkdirAll(args[1], 0o755); err != nil {
		return err
	}
	for _, d := range measured.Dimensions {
		drawn, err := d.draw()
		if err != nil {
			return fmt.Errorf("drawing %s: %w", d.Name, err)
		}
		if err := os.WriteFile(filepath.Join(args[1], d.Name+".svg"), drawn, 0o644); err != nil {
			return err
		}
	}
	return nil
}
