package query

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/spec/workload"
)

const (
	carryPrefix   = "muster.carry."
	carriedPrefix = "muster.carried."
	// MaxCarried bounds the content of an object that is carried, in bytes of JSON.
	MaxCarried = 512 << 10
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

// CarriedObject is the content of a ConfigMap or Secret.
type CarriedObject struct {
	// Type is that of a Secret.
	Type string            `json:"type,omitempty"`
	Text map[string]string `json:"text,omitempty"` // of a ConfigMap
	Data map[string][]byte `json:"data,omitempty"`
	// Digest is Sum, from who has read the object.
	Digest string `json:"digest"`
}

// Sum is the digest of the content.
func (o CarriedObject) Sum() (string, error) {
	o.Digest = ""
	encoded, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("encode what is carried: %w", err)
	}
	if len(encoded) > MaxCarried {
		return "", fmt.Errorf("has %d bytes; at most %d are carried", len(encoded), MaxCarried)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:]), nil
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
}

// Carry asks for an object as the dispatcher of a cluster.
func (c *Client) Carry(ctx context.Context, cluster string, request CarryRequest) (CarryAnswer, error) {
	return ask[CarryAnswer](ctx, c.transport, CarrySubject(cluster), request)
}

// HandleCarry answers the dispatchers of all clusters until ctx ends, a few of each at once.
func HandleCarry(ctx context.Context, nc *nats.Conn, answer func(ctx context.Context, cluster string, r CarryRequest) (CarryAnswer, error)) error {
	return handlePerCluster(ctx, nc, CarrySubject("*"), carryPrefix, func(ctx context.Context, cluster, _ string, r CarryRequest) (CarryAnswer, error) {
		return answer(ctx, cluster, r)
	})
}

// HandleCarried answers, as the dispatcher of a cluster, which objects queue-manager asks for, until
// ctx ends.
func HandleCarried(ctx context.Context, nc *nats.Conn, cluster string, read func(context.Context, CarriedWanted) (*CarriedObject, error)) error {
	turns := make(chan struct{}, carriedAtOnce)
	subscription, err := nc.Subscribe(CarriedWantedSubject(cluster), func(msg *nats.Msg) {
		var wanted CarriedWanted
		if json.Unmarshal(msg.Data, &wanted) != nil || !isToken(wanted.Asker) || !isToken(wanted.Number) {
			return // of no queue-manager
		}
		select {
		case turns <- struct{}{}:
		default:
			return // the question comes again
		}
		go func() {
			defer func() { <-turns }()
			ctx, cancel := context.WithTimeout(ctx, carriedWithin)
			defer cancel()
			var found CarriedFound
			object, err := read(ctx, wanted)
			if found.Object = object; err != nil {
				found = CarriedFound{Error: err.Error()}
			}
			if encoded, err := json.Marshal(found); err == nil {
				_ = nc.Publish(CarriedSubject(cluster, wanted.Asker, wanted.Number), encoded) // the question comes again
			}
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

// Carrier asks the dispatchers of clusters for objects, as a queue-manager.
type Carrier struct {
	nc    *nats.Conn
	asker string

	mu      sync.Mutex
	number  int
	waiting map[string]chan CarriedFound // by the subject of the answer
}

// NewCarrier returns a Carrier that works until ctx ends.
func NewCarrier(ctx context.Context, nc *nats.Conn) (*Carrier, error) {
	inbox := nats.NewInbox()
	c := &Carrier{nc: nc, asker: inbox[strings.LastIndexByte(inbox, '.')+1:], waiting: map[string]chan CarriedFound{}}
	subscription, err := nc.Subscribe(CarriedSubject("*", c.asker, "*"), c.found)
	if err != nil {
		return nil, fmt.Errorf("subscribe to objects of clusters: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = subscription.Unsubscribe() })
	return c, nil
}

// found passes an answer on. NATS lets a dispatcher publish on the subjects of its own cluster only.
func (c *Carrier) found(msg *nats.Msg) {
	c.mu.Lock()
	waiting := c.waiting[msg.Subject]
	delete(c.waiting, msg.Subject)
	c.mu.Unlock()
	if waiting == nil {
		return
	}
	var found CarriedFound
	if err := json.Unmarshal(msg.Data, &found); err != nil {
		found = CarriedFound{Error: "its answer cannot be read"}
	}
	waiting <- found
}

// Fetch asks the dispatcher of a cluster for an object.
func (c *Carrier) Fetch(ctx context.Context, cluster string, wanted CarriedWanted) (*CarriedObject, error) {
	answers := make(chan CarriedFound, 1)
	c.mu.Lock()
	c.number++
	wanted.Asker, wanted.Number = c.asker, fmt.Sprint(c.number)
	subject := CarriedSubject(cluster, wanted.Asker, wanted.Number)
	c.waiting[subject] = answers
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, subject)
		c.mu.Unlock()
	}()
	question, err := json.Marshal(wanted)
	if err == nil {
		err = c.nc.Publish(CarriedWantedSubject(cluster), question)
	}
	if err != nil {
		return nil, fmt.Errorf("ask cluster %q for %s %s/%s: %w", cluster, wanted.Kind, wanted.Namespace, wanted.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, carriedWithin)
	defer cancel()
	select {
	case <-ctx.Done():
		return nil, Busy(fmt.Sprintf("the dispatcher of cluster %q does not answer", cluster))
	case found := <-answers:
		return found.checked(cluster)
	}
}

// checked returns the object, if it is what its digest says.
func (f CarriedFound) checked(cluster string) (*CarriedObject, error) {
	switch {
	case f.Error != "":
		return nil, fmt.Errorf("cluster %q: %.500s", cluster, f.Error)
	case f.Object == nil:
		return nil, fmt.Errorf("cluster %q: its answer has no object", cluster)
	}
	if err := f.Object.Check(); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", cluster, err)
	}
	return f.Object, nil
}

// Check returns why the content is not that of the digest.
func (o CarriedObject) Check() error {
	sum, err := o.Sum()
	if err != nil {
		return err
	}
	if sum != o.Digest {
		return errors.New("the content has another digest")
	}
	return nil
}
