// Command licences names the licence of every module that is linked into Muster's
// programs, and fails on one that is not allowed or not recognised.
//
//	licences [-write] LIST < MODULES
//
// MODULES are lines "path directory", as `go list` prints them. LIST is the page
// that names them all; it must be of the present modules, or is rewritten.
// Which licences are allowed, and why some modules are excepted, is written here.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are licences that ask for no more than to be named with their text:
// what is linked stays under Muster's own.
func allowed() []string {
	return []string{"Apache-2.0", "BSD-2-Clause", "BSD-2-Clause-Views", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "Unlicense", "CC0-1.0", "Zlib", "0BSD"}
}

// part is how much of a file must be the text of known licences, in percent: the
// rest are names and years.
const part = 75

// excepted are modules whose files are not read right, with what a person found.
func excepted() map[string]string {
	return map[string]string{
		"github.com/opencontainers/go-digest": "Apache-2.0", // LICENSE.docs is of its documentation
	}
}

func main() {
	write := flag.Bool("write", false, "rewrite the list")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: licences [-write] LIST < MODULES")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *write); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(list string, write bool) error {
	found := map[string]string{}
	var faults []string
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		path, dir, ok := strings.Cut(lines.Text(), " ")
		if !ok || found[path] != "" {
			continue
		}
		licence, err := of(path, dir)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		found[path] = licence
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if len(faults) > 0 {
		slices.Sort(faults)
		return fmt.Errorf("of %d modules %d may not be linked:\n  %s", len(found)+len(faults), len(faults), strings.Join(faults, "\n  "))
	}
	if len(found) == 0 {
		return fmt.Errorf("no module was named")
	}
	page := render(found)
	if write {
		return os.WriteFile(list, page, 0o644)
	}
	present, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	if !bytes.Equal(present, page) {
		return fmt.Errorf("%s is not of the present modules: make licences", list)
	}
	return nil
}

// licenceFile is how files are called that say a licence.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([-.].*)?$`)

// of returns the licences of a module, by the files at its top.
func of(path, dir string) (string, error) {
	if licence, ok := excepted()[path]; ok {
		return licence, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	found := map[string]bool{}
	var closest float64
	for _, entry := range entries {
		if entry.IsDir() || !licenceFile.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", err
		}
		cover := licensecheck.Scan(content)
		closest = max(closest, cover.Percent)
		if cover.Percent < part {
			continue
		}
		for _, match := range cover.Match {
			found[match.ID] = true
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%s: no licence is recognised in %s (at most %.0f %% of a file)", path, dir, closest)
	}
	licences := slices.Sorted(maps.Keys(found))
	for _, licence := range licences {
		if !slices.Contains(allowed(), licence) {
			return "", fmt.Errorf("%s: %s is not among the allowed licences", path, licence)
		}
	}
	return strings.Join(licences, ", "), nil
}

func render(found map[string]string) []byte {
	var page bytes.Buffer
	page.WriteString("# Licences of what is linked\n\nEvery module of others that is part of one of Muster's programs, with its licence. " +
		"Made by `make licences`; `make lint` fails when it is not of the present modules, or one has a licence that is not allowed or not recognised.\n\n" +
		"| module | licence |\n|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&page, "| %s | %s |\n", path, found[path])
	}
	return page.Bytes()
}
