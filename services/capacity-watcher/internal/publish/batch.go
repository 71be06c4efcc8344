package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/capacity-watcher/internal/observed"
)

// message is an encoded observation.
type message struct {
	key     observed.Key
	subject string
	id      string
	data    []byte
	ttl     time.Duration
	answers string
}

// publishBatch publishes some changes; it returns how many, and how many it delays.
// What the server did not store stays marked as changed, except for a value that is larger than
// it takes: that one must not keep others back.
func (p *Publisher) publishBatch(ctx context.Context) (number, delayed int, err error) {
	messages, delayed, err := p.nextBatch()
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	type sending struct {
		value    bus.Value
		tooLarge error
	}
	sent := make([]sending, 0, len(messages))
	failed := p.Held()
	for _, m := range messages {
		if failed != nil {
			break
		}
		published, err := p.values.Publish(m.subject, m.id, m.data, m.ttl)
		if err != nil && !errors.Is(err, bus.ErrTooLarge) {
			failed = err
			break
		}
		sent = append(sent, sending{published, err})
	}
	for i, m := range messages {
		if i < len(sent) {
			err := sent[i].tooLarge
			if err == nil {
				err = sent[i].value.Wait(ctx)
			}
			switch {
			case err == nil:
				p.Metrics.published.Inc()
				continue
			case errors.Is(err, bus.ErrTooLarge):
				p.Metrics.failures.Inc()
				p.Logger.Error("an observation is larger than NATS accepts, so queue-manager keeps the one before; raise max_payload", zap.String("subject", m.subject), zap.Error(err))
				continue
			}
			failed = err
		}
		p.Apply(func(cache *observed.Cache) {
			cache.MarkChanged(m.key)
			if _, asked := p.answers[m.key]; !asked && m.answers != "" {
				p.answers[m.key] = m.answers
			}
		})
	}
	return len(messages), delayed, failed
}

func (p *Publisher) nextBatch() (messages []message, delayed int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Metrics.sizes(p.cache.Sizes())
	keys := p.cache.Drain(batch)
	messages = make([]message, 0, len(keys))
	now := p.Now()
	for _, key := range keys {
		pods := p.cache.GangSize(key.Gang)
		if wait := p.pace.early(key, pods, now); wait > 0 {
			delayed++
			p.cache.MarkChanged(key)
			p.Later(wait, p.notify)
			continue
		}
		p.pace.published(key, pods, now)
		payload, gone := p.cache.Observation(key, p.next())
		answers := p.answers[key]
		delete(p.answers, key)
		m, err := p.encode(answering(payload, answers))
		if err != nil {
			p.cache.MarkChanged(keys...)
			return nil, 0, err
		}
		m.key, m.subject, m.answers = key, p.subject(key), answers
		if gone {
			m.ttl = goneKept
		}
		messages = append(messages, m)
	}
	return messages, delayed, nil
}

func (p *Publisher) publishList(ctx context.Context) error {
	p.mu.Lock()
	nodes, gangs := p.cache.Seen()
	m, err := p.encode(&event.CapacitySynced{Version: p.next(), Cluster: p.Cluster, Nodes: nodes, Gangs: gangs, Namespaces: p.cache.NamespacesListed(), Kinds: p.cache.Kinds()})
	p.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := p.Held(); err != nil {
		return err
	}
	published, err := p.values.Publish(event.SyncedSubject(p.Cluster), m.id, m.data, 0)
	if err != nil {
		return err
	}
	return published.Wait(ctx)
}

// next returns the version of the next message; the lock is delayed.
func (p *Publisher) next() event.Version {
	p.version.Seq++
	return p.version
}

// encode puts the payload into an envelope whose id is its version; the lock is delayed.
func (p *Publisher) encode(payload event.Payload) (message, error) {
	id := fmt.Sprintf("%s/%d/%d", p.source, p.version.Session, p.version.Seq)
	traceparent := ""
	if gang, ok := payload.(*event.GangObserved); ok {
		span := p.Tracer.Continue(gang.Workload, "", "pods seen", time.Now(), "muster.cluster", p.Cluster)
		traceparent = span.Traceparent()
		span.End(nil)
	}
	data, err := event.Marshal(id, p.source, p.Now(), traceparent, payload)
	return message{id: id, data: data}, err
}

func (p *Publisher) subject(key observed.Key) string {
	switch {
	case key.Gang != workload.ID(""):
		return event.GangSubject(p.Cluster, key.Gang)
	case key.Namespace != "":
		return event.NamespaceSubject(p.Cluster, key.Namespace)
	}
	return event.NodeSubject(p.Cluster, key.Node)
}
