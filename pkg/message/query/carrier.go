package query

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/message/bounds"
)

// carriedBounds are of an answer with an object.
func carriedBounds() bounds.JSON {
	return bounds.JSON{Bytes: MaxCarried + 4<<10, Depth: 4, Values: 2 * MostCarriedKeys}
}

// Carrier asks the dispatchers of clusters for objects, as a queue-manager.
type Carrier struct {
	nc    *nats.Conn
	asker string

	mu      sync.Mutex
	number  int
	waiting map[string]chan *nats.Msg // by the subject of the answer
}

// NewCarrier returns a Carrier that works until ctx ends.
func NewCarrier(ctx context.Context, nc *nats.Conn) (*Carrier, error) {
	inbox := nats.NewInbox()
	c := &Carrier{nc: nc, asker: inbox[strings.LastIndexByte(inbox, '.')+1:], waiting: map[string]chan *nats.Msg{}}
	subscription, err := nc.Subscribe(CarriedSubject("*", c.asker, "*"), c.found)
	if err != nil {
		return nil, fmt.Errorf("subscribe to objects of clusters: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = subscription.Unsubscribe() })
	return c, nil
}

// found passes an answer on, which Fetch decodes. NATS lets a dispatcher publish on the subjects of
// its own cluster only.
func (c *Carrier) found(msg *nats.Msg) {
	c.mu.Lock()
	waiting := c.waiting[msg.Subject]
	delete(c.waiting, msg.Subject)
	c.mu.Unlock()
	if waiting != nil {
		waiting <- msg
	}
}

// Fetch asks the dispatcher of a cluster for an object.
func (c *Carrier) Fetch(ctx context.Context, cluster string, wanted CarriedWanted) (*CarriedObject, error) {
	answers := make(chan *nats.Msg, 1)
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
	case msg := <-answers:
		found, err := readBounded[CarriedFound](carriedBounds(), msg)
		if err != nil {
			return nil, fmt.Errorf("cluster %q: its answer cannot be read: %w", cluster, err)
		}
		return found.checked(cluster)
	}
}

// checked returns the object, if its digest is that of its content.
func (f CarriedFound) checked(cluster string) (*CarriedObject, error) {
	switch {
	case f.Busy:
		return nil, Busy(fmt.Sprintf("cluster %q: %.500s", cluster, f.Error))
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
