package local

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// clockProgram prints, for each line that it reads, the time by the wall clock and since its
// start.
const clockProgram = `package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func main() {
	began := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(time.Now().UnixNano(), int64(time.Since(began)))
	}
}
`

// TestAClockJumps: the wall clock of a program goes where it is set, at once; what has
// passed does not.
func TestAClockJumps(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"main.go": clockProgram, "go.mod": "module told\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	if err := buildStepped(t.Context(), dir, filepath.Join(dir, "bin"), "."); err != nil {
		t.Fatal(err)
	}
	c, err := newClock(filepath.Join(dir, "clock"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "told"))
	cmd.Env = append(os.Environ(), clockVariable+"="+c.file)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(out)
	for _, step := range []time.Duration{0, time.Hour, -time.Hour, 2 * time.Second, -1500 * time.Millisecond, 0} {
		c.set(step)
		asked := time.Now()
		if _, err := fmt.Fprintln(in); err != nil {
			t.Fatal(err)
		}
		var wall, passed int64
		if _, err := fmt.Fscanln(answers, &wall, &passed); err != nil {
			t.Fatal(err)
		}
		answered := time.Now()
		if at := time.Unix(0, wall).Add(-step); at.Before(asked) || at.After(answered) {
			t.Errorf("with a step of %s it is %s, want one between %s and %s", step, time.Unix(0, wall), asked.Add(step), answered.Add(step))
		}
		if passed < 0 || time.Duration(passed) > time.Minute {
			t.Errorf("with a step of %s, %s have passed since its start", step, time.Duration(passed))
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
