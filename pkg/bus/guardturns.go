package bus

import (
	"strings"
	"sync"
)

// Bounds of the requests that are forwarded or wait for it, of buffered in all: for consumers of the
// subjects of one cluster, which are all that the key of a cluster may ask for, for those of the
// events of one queue, which each request over HTTP follows, and for one stream, which services ask
// for again.
const (
	consumersOpen = 16
	eventsOpen    = 64
	streamsOpen   = 64
)

// filterParts are the parts of a filter that name its kind and its cluster or queue.
const filterParts = 3

// guardKey is what a request is for: a stream, or the subjects of a cluster or queue in one.
func guardKey(subject string) string {
	asked := strings.TrimPrefix(subject, GuardSubject)
	rest, is := strings.CutPrefix(asked, guardCreates)
	if !is {
		return asked
	}
	stream, rest, _ := strings.Cut(rest, ".")
	_, filter, _ := strings.Cut(rest, ".") // behind the name of the consumer
	parts := strings.Split(filter, ".")
	return guardCreates + stream + "." + strings.Join(parts[:min(filterParts, len(parts))], ".")
}

func mostOpen(key string) int {
	switch {
	case strings.HasPrefix(key, guardCreates+EventsStream+"."):
		return eventsOpen
	case strings.HasPrefix(key, guardCreates):
		return consumersOpen
	}
	return streamsOpen
}

// guardTurns counts the open requests by what they are for.
type guardTurns struct {
	mu   sync.Mutex
	open map[string]int
}

func (g *guardTurns) begin(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[key] >= mostOpen(key) {
		return false
	}
	if g.open == nil {
		g.open = map[string]int{}
	}
	g.open[key]++
	return true
}

func (g *guardTurns) end(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[key]--; g.open[key] <= 0 {
		delete(g.open, key)
	}
}
