package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"muster.dev/muster/test/suite"
)

// A program that is built with another time.Now adds to the wall clock what a file
// says, at any moment: to it, and to each library in it, the clock of its machine
// jumps. Timers and durations go on, as the kernel's monotonic clock does when
// the test sets the time. Everything else of the program is the same.

// clockVariable names the file, for programs that are built so.
const clockVariable = "MUSTER_TEST_CLOCK"

// steppedNow replaces the line of time.Now that reads the clock.
const (
	plainNow   = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	steppedNow = plainNow + "\tsec, nsec = stepped(sec, nsec)\n"
)

// steppedSource is a file of package time.
const steppedSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var clockStep = openClockStep()

func openClockStep() *int64 {
	name, there := syscall.Getenv("` + clockVariable + `")
	if !there {
		return new(int64)
	}
	fd, err := syscall.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		panic("open the clock " + name + ": " + err.Error())
	}
	data, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("map the clock " + name + ": " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&data[0]))
}

func stepped(sec int64, nsec int32) (int64, int32) {
	all := int64(nsec) + atomic.LoadInt64(clockStep)
	sec, all = sec+all/1e9, all%1e9
	if all < 0 {
		sec, all = sec-1, all+1e9
	}
	return sec, int32(all)
}
`

// buildStepped builds packages of a module, or of a workspace, with the clock that
// jumps, into a directory.
func buildStepped(ctx context.Context, module, into string, packages ...string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find the source of Go: %w", err)
	}
	std := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		return err
	}
	if strings.Count(string(source), plainNow) != 1 {
		return fmt.Errorf("%s: time.Now of this Go is not read as expected: %q", std, plainNow)
	}
	overlay := map[string]string{}
	for name, content := range map[string]string{
		"time.go": strings.Replace(string(source), plainNow, steppedNow, 1), "stepped.go": steppedSource,
	} {
		file := filepath.Join(into, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return err
		}
		if overlay[filepath.Join(std, name)], err = filepath.Abs(file); err != nil {
			return err
		}
	}
	replaced, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	listed, err := filepath.Abs(filepath.Join(into, "overlay.json"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(listed, replaced, 0o600); err != nil {
		return err
	}
	into, err = filepath.Abs(into)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath", "-buildvcs=false", "-overlay=" + listed, "-o", into + "/"}, packages...)...)
	build.Dir, build.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %q with a clock that jumps: %w\n%s", packages, err, output)
	}
	return nil
}

// clockBinaries is where programs with clocks that jump are.
func (p *Provider) clockBinaries() string { return filepath.Join(p.Binaries, "clock") }

// buildClocks builds the services and NATS with clocks that jump, when they are wanted.
// What is built already Go's cache has.
func (in *installation) buildClocks(ctx context.Context) error {
	if !in.shape.Clocks {
		return nil
	}
	packages := []string{"github.com/nats-io/nats-server/v2"} // of the version that the workspace requires
	for _, name := range []string{"intake", "queue-manager", "capacity-watcher", "dispatcher"} {
		packages = append(packages, "./services/"+name)
	}
	return buildStepped(ctx, filepath.Dir(in.Binaries), in.clockBinaries(), packages...)
}

// withClock gives a part the program and the clock that can jump, when they are wanted.
func (in *installation) withClock(name string, part *process) error {
	if !in.shape.Clocks {
		return nil
	}
	c, err := newClock(filepath.Join(in.dir, name+".clock"))
	if err != nil {
		return err
	}
	in.clocks[name], part.environment = c, []string{clockVariable + "=" + c.file}
	part.binary = filepath.Join(in.clockBinaries(), filepath.Base(part.binary))
	return nil
}

// clock is how far the clock of a process is from that of the machine.
type clock struct {
	file string
	step *int64
}

func newClock(file string) (*clock, error) {
	if err := os.WriteFile(file, make([]byte, 8), 0o600); err != nil {
		return nil, err
	}
	opened, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	data, err := syscall.Mmap(int(opened.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the clock %s: %w", file, err)
	}
	return &clock{file, (*int64)(unsafe.Pointer(&data[0]))}, nil
}

func (c *clock) set(step time.Duration) { atomic.StoreInt64(c.step, int64(step)) }

// swayEvery is how often a clock that sways jumps, to one side and the other.
const swayEvery = 700 * time.Millisecond

// breakClock has the clock of a part jump, and back when the fault is over.
func (in *installation) breakClock(ctx context.Context, name string, fault suite.Fault) (func(context.Context) error, error) {
	c := in.clocks[name]
	if c == nil {
		return nil, fmt.Errorf("%w: %s has the clock of the machine", suite.ErrNotHere, name)
	}
	back := func(context.Context) error { c.set(0); return nil }
	switch fault {
	case suite.ClockAhead:
		return back, in.jump(ctx, name, suite.ClockJump)
	case suite.ClockBehind:
		return back, in.jump(ctx, name, -suite.ClockJump)
	case suite.ClockSways:
		over, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			sway(c, over)
		}()
		return func(ctx context.Context) error {
			close(over)
			<-done
			return back(ctx)
		}, nil
	}
	return nil, errors.New("there is no such fault of a clock: " + string(fault))
}

// dateMost is how far the date of an answer may be from the clock that was set.
const dateMost = 30 * time.Second

// jump sets the clock of a part, and makes sure that the part goes by it: the date of an
// answer is what the part takes for now.
func (in *installation) jump(ctx context.Context, name string, step time.Duration) error {
	in.clocks[name].set(step)
	ctx, cancel := context.WithTimeout(ctx, dateMost/2)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, in.processes[name].ready, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s for the time: %w", name, err)
	}
	_ = response.Body.Close()
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return fmt.Errorf("the time of %s: %w", name, err)
	}
	if off := time.Until(date.Add(-step)).Abs(); off > dateMost {
		return fmt.Errorf("the clock of %s was set %s off, and is %s from there", name, step, off)
	}
	return nil
}

func sway(c *clock, over <-chan struct{}) {
	ticker := time.NewTicker(swayEvery)
	defer ticker.Stop()
	for step := suite.ClockSway; ; step = -step {
		c.set(step)
		select {
		case <-over:
			return
		case <-ticker.C:
		}
	}
}
