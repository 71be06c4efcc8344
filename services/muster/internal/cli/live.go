package cli

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/output"
)

// How often the view is drawn again: after changes, and without any, because ages grow.
const (
	drawAfterChange = 250 * time.Millisecond
	drawUnchanged   = 5 * time.Second
)

// liveView is a table of workloads that is drawn again when they change.
type liveView struct {
	to     *terminal
	picked picked
	format output.Format

	mu      sync.Mutex
	records map[workload.ID]workload.Record
	order   []workload.ID // by submission
	stale   bool
}

func newLiveView(to *terminal, selected picked, format output.Format) *liveView {
	return &liveView{to: to, picked: selected, format: format, records: map[workload.ID]workload.Record{}, stale: true}
}

// put takes workloads in as they are now.
func (v *liveView) put(records ...workload.Record) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range records {
		if _, known := v.records[r.ID]; !known {
			v.order = append(v.order, r.ID)
		}
		v.records[r.ID], v.stale = r, true
	}
}

// step takes an event in.
func (v *liveView) step(s follow.Step) error {
	if s.Record.Phase != workload.Rejected {
		v.put(s.Record)
	}
	return nil
}

// screen is what the terminal shows: the header and the last workloads for which there is
// room.
func (v *liveView) screen(now time.Time) (string, error) {
	v.mu.Lock()
	all := make([]workload.Record, 0, len(v.order))
	for _, id := range v.order {
		all = append(all, v.records[id])
	}
	v.stale = false
	v.mu.Unlock()
	columns, rows := v.to.size()
	shown := v.picked.of(all, now)
	if most := max(1, rows-2); len(shown) > most { // beside the header and the cursor
		shown = shown[len(shown)-most:]
	}
	var table strings.Builder
	if err := output.Workloads(shown, v.format, now).Write(&table, ""); err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")
	for i, line := range lines {
		if runes := []rune(line); len(runes) > columns {
			lines[i] = string(runes[:columns-1]) + "…"
		}
	}
	text := strings.Join(lines, "\n")
	if !v.to.plain {
		text = colored(text)
	}
	return home + strings.ReplaceAll(text, "\n", clearLineEnd+"\n") + clearLineEnd + "\n" + clearBelow, nil
}

// draw draws the view until ctx ends.
func (v *liveView) draw(ctx context.Context) error {
	if _, err := v.to.Write([]byte(clearScreen)); err != nil {
		return err
	}
	ticks := time.NewTicker(drawAfterChange)
	defer ticks.Stop()
	for drawn := (time.Time{}); ; {
		v.mu.Lock()
		due := v.stale || time.Since(drawn) >= drawUnchanged
		v.mu.Unlock()
		if due {
			drawn = time.Now()
			text, err := v.screen(drawn)
			if err == nil {
				_, err = v.to.Write([]byte(text))
			}
			if err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// live shows the selected workloads as they change, until the user has seen enough.
func (o *getOptions) live(cmd *cobra.Command, selected picked, names []string, to *terminal) error {
	view := newLiveView(to, selected, o.output)
	err := o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		records, err := o.list(ctx, client, names, &view.picked)
		view.put(records...)
		return err
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	drawing := make(chan error, 1)
	go func() {
		drawing <- view.draw(ctx)
		stop()
	}()
	err = o.follow(ctx, view.picked, view.step)
	stop()
	if drawn := <-drawing; err == nil {
		err = drawn
	}
	return err
}
