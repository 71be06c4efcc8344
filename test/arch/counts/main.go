// Command counts prints figures on the size and the order of the code, and the sizes of the
// programs that are built, as a table:
//
//	go run ./test/arch/counts [-root DIR] [PACKAGE...]
//
// With -root it counts another checkout, such as that of an earlier commit. It looks at the
// calls between the files of the packages that are named, without names of those whose files
// have an order.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"muster.dev/muster/test/arch"
)

func main() {
	root := flag.String("root", "", "the `directory` with go.work; the one of this checkout by default")
	flag.Parse()
	if err := run(os.Stdout, *root, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "counts:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string, packages []string) error {
	if root == "" {
		var err error
		if root, err = arch.Root(); err != nil {
			return err
		}
	}
	if len(packages) == 0 {
		packages = arch.Ordered()
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("find %q: %w", root, err)
	}
	counts, err := arch.Count(root, packages)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "| what | how many |\n|---|---|\n%s", counts); err != nil {
		return err
	}
	return printSizes(out, filepath.Join(root, "bin"))
}

// printSizes prints a row for each program in a directory, which need not be there.
func printSizes(out io.Writer, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list the programs: %w", err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("list the programs: %w", err)
		}
		if !info.Mode().IsRegular() {
			continue
		}
		if _, err := fmt.Fprintf(out, "| size of %s | %.1f MB |\n", entry.Name(), float64(info.Size())/1e6); err != nil {
			return err
		}
	}
	return nil
}
