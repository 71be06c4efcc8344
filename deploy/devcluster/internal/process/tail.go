package process

import (
	"bytes"
	"io"
	"os"
)

const (
	tailLines = 15
	tailBytes = 16 << 10
)

// Tail returns the last lines of a log file, or why it cannot be read.
func Tail(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err.Error()
	}
	if _, err := f.Seek(max(0, size-tailBytes), io.SeekStart); err != nil {
		return err.Error()
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	rows := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	rows = rows[max(0, len(rows)-lines):]
	return "  | " + string(bytes.Join(rows, []byte("\n  | ")))
}
