package query

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/spec/workload"
)

const (
	carryPrefix   = "muster.carry."
	carriedPrefix = "muster.carried."
	// carryAtOnce bounds the objects that one cluster is given at once, of the carriedAtOnce that
	// another one reads.
	carryAtOnce = 2
	// carriedAtOnce bounds the objects that a dispatcher reads at once for other clusters.
	carriedAtOnce = 8
	// carriedWithin bounds the time for the dispatcher of another cluster to answer.
	carriedWithin = 5 * time.Second
)

// CarrySubject is where the dispatcher of a cluster asks for an object of another cluster. NATS lets
// its user ask for its own cluster only.
func CarrySubject(cluster string) string { return carryPrefix + cluster }

// CarriedWantedSubject is where queue-manager asks the dispatcher of a cluster for an object. The
// answer comes on CarriedSubject.
func CarriedWantedSubject(cluster string) string { return carryPrefix + cluster + ".wanted" }

// CarriedSubject is where the dispatcher of a cluster answers a queue-manager, of which the question
// has a number.
func CarriedSubject(cluster, asker, number string) string {
	return carriedPrefix + cluster + "." + asker + "." + number
}

// CarryRequest asks for an object that the queue of a workload carries.
type CarryRequest struct {
	Workload workload.ID `json:"workload"`
	Attempt  int         `json:"attempt"`
	Kind     string      `json:"kind"`
	Name     string      `json:"name"`
}

// CarryAnswer has the object.
type CarryAnswer struct {
	// From is the cluster that has it.
	From   string         `json:"from"`
	Object *CarriedObject `json:"object"`
}

// CarriedWanted asks the dispatcher of a cluster for an object.
type CarriedWanted struct {
	Asker     string `json:"asker"`
	Number    string `json:"number"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// CarriedFound is its answer: the object, or why there is none.
type CarriedFound struct {
	Object *CarriedObject `json:"object,omitempty"`
	Error  string         `json:"error,omitempty"`
	// Busy: it may be asked again later.
	Busy bool `json:"busy,omitempty"`
}

// Carry asks for an object as the dispatcher of a cluster.
func (c *Client) Carry(ctx context.Context, cluster string, request CarryRequest) (CarryAnswer, error) {
	return ask[CarryAnswer](ctx, c.transport, CarrySubject(cluster), request)
}

// HandleCarry answers the dispatchers of all clusters until ctx ends, a few of each at once.
func HandleCarry(ctx context.Context, nc *nats.Conn, answer func(ctx context.Context, cluster string, r CarryRequest) (CarryAnswer, error)) error {
	at := endpoint{CarrySubject("*"), carryPrefix, carryAtOnce, smallRequest()}
	return handlePerCluster(ctx, nc, at, func(ctx context.Context, cluster, _ string, r CarryRequest) (CarryAnswer, error) {
		return answer(ctx, cluster, r)
	})
}

// HandleCarried answers, as the dispatcher of a cluster, which objects queue-manager asks for, until
// ctx ends.
func HandleCarried(ctx context.Context, nc *nats.Conn, cluster string, read func(context.Context, CarriedWanted) (*CarriedObject, error)) error {
	turns := make(chan struct{}, carriedAtOnce)
	answer := func(to CarriedWanted, found CarriedFound) {
		if encoded, err := json.Marshal(found); err == nil {
			_ = nc.Publish(CarriedSubject(cluster, to.Asker, to.Number), encoded) // the question comes again
		}
	}
	subscription, err := nc.Subscribe(CarriedWantedSubject(cluster), func(msg *nats.Msg) {
		wanted, err := readBounded[CarriedWanted](smallRequest(), msg)
		if err != nil || !isToken(wanted.Asker) || !isToken(wanted.Number) {
			return // of no queue-manager
		}
		select {
		case turns <- struct{}{}:
		default:
			answer(wanted, CarriedFound{Busy: true, Error: fmt.Sprintf("%d objects are being read; try again", carriedAtOnce)})
			return
		}
		go func() {
			defer func() { <-turns }()
			ctx, cancel := context.WithTimeout(ctx, carriedWithin)
			defer cancel()
			object, err := read(ctx, wanted)
			if err != nil {
				answer(wanted, CarriedFound{Error: err.Error()})
				return
			}
			answer(wanted, CarriedFound{Object: object})
		}()
	})
	if err != nil {
		return fmt.Errorf("serve objects to other clusters: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = subscription.Unsubscribe() })
	return nil
}

// isToken reports whether a text can be one part of a subject.
func isToken(text string) bool {
	return text != "" && len(text) <= 64 && !strings.ContainsAny(text, ".*> \t\r\n")
}
