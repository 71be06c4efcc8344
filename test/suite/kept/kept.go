// Package kept keeps what came of long tests in files, to which several runs add, also
// at once, and puts tables of them into pages.
package kept

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Read returns the rows in a file, none without the file.
func Read[Row any](file string) ([]Row, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var rows []Row
	if err == nil {
		err = json.Unmarshal(content, &rows)
	}
	if err != nil {
		return nil, fmt.Errorf("read the outcomes in %s: %w", file, err)
	}
	return rows, nil
}

// Page is where a table is put.
type Page struct {
	File  string // none if empty
	Table string // name of the table
}

// Change replaces the rows of a file by what change returns, and puts the table of them into
// the page. Processes that change files of one folder take turns.
func Change[Row any](file string, change func([]Row) []Row, page Page, table func([]Row) string) error {
	unlock, err := lock(file)
	if err != nil {
		return err
	}
	defer unlock()
	rows, err := Read[Row](file)
	if err != nil {
		return err
	}
	rows = change(rows)
	content, err := json.MarshalIndent(rows, "", "  ")
	if err == nil {
		err = os.WriteFile(file, append(content, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("keep outcomes in %s: %w", file, err)
	}
	if page.File == "" {
		return nil
	}
	if filepath.Dir(page.File) != filepath.Dir(file) { // or it is locked
		if unlock, err = lock(page.File); err != nil {
			return err
		}
		defer unlock()
	}
	return write(page, table(rows))
}

// lock makes other processes wait that lock files of the same folder.
func lock(file string) (unlock func(), err error) {
	folder, err := os.Open(filepath.Dir(file))
	if err == nil {
		if err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err == nil {
			return func() { _ = folder.Close() }, nil
		}
		_ = folder.Close()
	}
	return nil, fmt.Errorf("lock the folder of %s: %w", file, err)
}

// Marks in a page, between which a table stands.
func beginMark(name string) string { return "<!-- " + name + ": begin -->\n" }

func endMark(name string) string { return "<!-- " + name + ": end -->\n" }

// Table returns the table of a page.
func Table(page Page) (string, error) {
	_, table, _, err := cut(page)
	return table, err
}

// write puts a table into a page, between its marks.
func write(page Page, table string) error {
	before, _, after, err := cut(page)
	if err != nil {
		return err
	}
	return os.WriteFile(page.File, []byte(before+table+after), 0o644)
}

// cut splits a page at a table. The marks are not in the table.
func cut(page Page) (before, table, after string, err error) {
	content, err := os.ReadFile(page.File)
	if err != nil {
		return "", "", "", err
	}
	begin, end := beginMark(page.Table), endMark(page.Table)
	before, rest, found := strings.Cut(string(content), begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", "", "", fmt.Errorf("%s: want the lines %q and %q, between which the table is put", page.File, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin, table, end + after, nil
}

// MedianAndLongest writes durations for a table.
func MedianAndLongest(took []time.Duration) string {
	if len(took) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(took))
	return fmt.Sprintf("%.1f s, %.1f s", sorted[len(sorted)/2].Seconds(), sorted[len(sorted)-1].Seconds())
}
