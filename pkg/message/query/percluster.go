package query

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/message/bounds"
)

// endpoint is where the services of clusters ask, whose keys are in clusters that may be another's.
type endpoint struct {
	subject string
	// prefix of the subject is before the name of the cluster.
	prefix string
	// atOnce bounds the requests of one cluster that are answered at once.
	atOnce int
	// bounds are of a request, before it is decoded.
	bounds bounds.JSON
}

// smallRequest bounds a request that has a few names.
func smallRequest() bounds.JSON { return bounds.JSON{Bytes: 4 << 10, Depth: 4, Values: 32} }

// handlePerCluster answers requests at an endpoint until ctx ends. What follows the prefix is the cluster,
// and rest what is behind it. All of a request but its turn is in a goroutine of its own: the
// subscription passes on those of all clusters.
func handlePerCluster[Request, Answer any](ctx context.Context, nc *nats.Conn, at endpoint,
	answer func(ctx context.Context, cluster, rest string, r Request) (Answer, error),
) error {
	turns := perCluster{atOnce: at.atOnce}
	return subscribe(ctx, nc, at.subject, func(msg *nats.Msg) {
		cluster, rest, _ := strings.Cut(strings.TrimPrefix(msg.Subject, at.prefix), ".")
		if !turns.begin(cluster) {
			respond(msg, nil, Busy(fmt.Sprintf("%d requests of cluster %.80q are being answered; try again", at.atOnce, cluster)))
			return
		}
		go func() {
			defer turns.end(cluster)
			ctx, cancel := context.WithTimeout(ctx, answerTimeout)
			defer cancel()
			request, err := readBounded[Request](at.bounds, msg)
			if err != nil {
				respond(msg, nil, err)
				return
			}
			result, err := answer(ctx, cluster, rest, request)
			respond(msg, result, err)
		}()
	})
}

func readBounded[Request any](b bounds.JSON, msg *nats.Msg) (request Request, err error) {
	if err := b.Check(msg.Data); err != nil {
		return request, fmt.Errorf("request on %.200s %w", msg.Subject, err)
	}
	return read[Request](msg.Subject, msg.Data)
}

// perCluster counts the requests of each cluster that are being answered.
type perCluster struct {
	atOnce int

	mu   sync.Mutex
	open map[string]int
}

func (p *perCluster) begin(cluster string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[cluster] >= p.atOnce {
		return false
	}
	if p.open == nil {
		p.open = map[string]int{}
	}
	p.open[cluster]++
	return true
}

func (p *perCluster) end(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[cluster]--; p.open[cluster] <= 0 {
		delete(p.open, cluster)
	}
}
