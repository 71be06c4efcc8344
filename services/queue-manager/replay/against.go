package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/pkg/policyfile/queuesfile"
	"muster.dev/muster/pkg/service/version"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/services/queue-manager/internal/settings"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Playback is a recorded history that was played again.
type Playback struct {
	// Release of Muster that played it.
	Release string `json:"release"`
	// RecordedBy is the release that decided last in the record.
	RecordedBy string    `json:"recordedBy"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Decisions  int       `json:"decisions"`
	// Offered is what the nodes offered in that time, in units of resources times seconds.
	Offered map[resource.Name]float64 `json:"offered"`
	// Recorded is what became of the workloads in the record, Played what became of them now.
	Recorded estimate.Result `json:"recorded"`
	Played   estimate.Result `json:"played"`
}

// ReadPolicy reads a queues file, or Kueue's manifests, as a queue-manager that is started with
// it does.
func ReadPolicy(content []byte) (*state.Settings, error) {
	file, _, err := queuesfile.Read(content)
	if err != nil {
		return nil, err
	}
	read := settings.File{Settings: settings.Settings{Policy: file.Config}}
	for _, q := range file.Queues {
		read.Queues = append(read.Queues, state.Queue{Name: q.Name, Namespaces: q.Namespaces, Strategy: q.Strategy, Rules: q.Rules})
	}
	all, _, err := read.Combine(nil)
	return &all, err
}

// Play plays the kept history again, from the last checkpoint before the given time on, with
// this release and, unless it is nil, another policy. Gangs run as long as they did in the
// record. It calls progress now and then.
func Play(ctx context.Context, databaseURL string, since time.Time, policy *state.Settings, progress func(Report)) (Playback, error) {
	if databaseURL == "" {
		return Playback{}, errors.New("the database URL is missing")
	}
	s, err := store.OpenReader(ctx, databaseURL, store.DefaultTimeouts())
	if err != nil {
		return Playback{}, err
	}
	defer s.Close()
	h, err := readHistory(ctx, s, since, progress)
	if err != nil {
		return Playback{}, err
	}
	begin := h.begin
	if policy != nil {
		begin.Queues, begin.Policy = policy.Queues, policy.Policy
	}
	played, err := playback(begin, h, policy != nil)
	if err != nil {
		return Playback{}, err
	}
	offered := estimate.Offered(h.begin, h.events, h.end)
	return Playback{
		Release: version.String(), RecordedBy: h.release, From: h.begin.Now, To: h.end, Decisions: h.decisions, Offered: offered,
		Recorded: estimate.ResultOf(h.recorded, h.begin.Now, offered), Played: estimate.ResultOf(played, h.begin.Now, offered),
	}, nil
}

// playback keeps a panic, which a damaged record may cause, from ending the program.
func playback(begin estimate.Snapshot, h *history, fixed bool) (played *estimate.Played, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the record cannot be played: %v", cause)
		}
	}()
	return estimate.Playback(begin, h.events, h.runs, h.end, fixed)
}
