package containers

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	tcexec "github.com/testcontainers/testcontainers-go/exec"
	"github.com/testcontainers/testcontainers-go/wait"
)

// inState is a container in which no command succeeds.
type inState struct {
	wait.StrategyTarget
	state container.State
}

// Exec implements wait.StrategyTarget.
func (inState) Exec(context.Context, []string, ...tcexec.ProcessOption) (int, io.Reader, error) {
	return 0, nil, errors.New("no command runs")
}

// State implements wait.StrategyTarget.
func (s inState) State(context.Context) (*container.State, error) { return &s.state, nil }

// TestAContainerThatHasEndedIsNotAwaited: the wait for a container ends when that has ended, and goes
// on while it is started, or started again.
func TestAContainerThatHasEndedIsNotAwaited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state container.State
		want  string
	}{
		"it has ended":        {container.State{Status: "exited", ExitCode: 3}, "the container has ended with 3"},
		"it runs":             {container.State{Status: "running", Running: true}, "not ready within"},
		"it is started again": {container.State{Status: "restarting", Restarting: true, ExitCode: 3}, "not ready within"},
		"it is not started":   {container.State{Status: "created"}, "not ready within"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // what waits on ends at once
			err := ready{[]string{"true"}}.WaitUntilReady(ctx, inState{state: c.state})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}
