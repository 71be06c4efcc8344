package checker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// message is a CloudEvent with the fields that are looked at.
type message struct {
	Type string `json:"type"`
	Data struct {
		ID         string      `json:"id"`
		Workload   string      `json:"workload"`
		Phase      string      `json:"phase"`
		State      string      `json:"state"`
		Attempt    int         `json:"attempt"`
		Placements []placement `json:"placements"`
		Times      struct {
			Admitted time.Time `json:"admitted"`
		} `json:"times"`
	} `json:"data"`
}

type placement struct {
	Pods int `json:"pods"`
}

// admission is when an attempt was admitted, and with how many pods. Its places are not part
// of it: a gang that has not started is moved when its places are lost.
type admission struct {
	at   time.Time
	pods int
}

// settledStreams is checkStreams when what was lost has been said again, or should
// have been.
func (c *Checker) settledStreams(ctx context.Context, gangs []Gang, patience time.Duration) []string {
	return settled(ctx, patience, func() []string {
		wrong, err := c.checkStreams(ctx, gangs)
		if err != nil {
			wrong = []string{fmt.Sprintf("read the streams: %v", err)}
		}
		return wrong
	})
}

// settled is what is wrong when nothing is any more, or patience is over.
func settled(ctx context.Context, patience time.Duration, look func() []string) (wrong []string) {
	for deadline := time.Now().Add(patience); ; {
		wrong = look()
		if len(wrong) == 0 || time.Now().After(deadline) {
			return wrong
		}
		select {
		case <-ctx.Done():
			return wrong
		case <-time.After(lookEvery):
		}
	}
}

// checkStreams reads what the streams have: one admission of each attempt and the end
// of each workload, which may be told again, and no command to start anything.
func (c *Checker) checkStreams(ctx context.Context, gangs []Gang) (wrong []string, err error) {
	type admitted struct {
		workload string
		attempt  int
	}
	admissions, ended := map[admitted]admission{}, map[string]bool{}
	err = c.each(ctx, "MUSTER_EVENTS", "muster.events.*.*", jetstream.DeliverAllPolicy, func(m message) {
		if m.Type != "dev.muster.workload.changed.v1" {
			return
		}
		switch m.Data.Phase {
		case "succeeded", "failed", "cancelled", "rejected":
			ended[m.Data.ID] = true
		case "admitted":
			if len(m.Data.Placements) == 0 {
				return // told again from history, which has no places
			}
			of, now := admitted{m.Data.ID, m.Data.Attempt}, admission{at: m.Data.Times.Admitted.UTC().Truncate(time.Microsecond)}
			for _, p := range m.Data.Placements {
				now.pods += p.Pods
			}
			if before, known := admissions[of]; known && before != now {
				wrong = append(wrong, fmt.Sprintf("attempt %d of workload %s was admitted twice: at %s with %d pods, and at %s with %d",
					of.attempt, of.workload, before.at, before.pods, now.at, now.pods))
			}
			admissions[of] = now
		}
	})
	if err != nil {
		return nil, err
	}
	err = c.each(ctx, "MUSTER_DISPATCH", "muster.dispatch."+c.Cluster+".*", jetstream.DeliverLastPerSubjectPolicy, func(m message) {
		if m.Data.State == "present" {
			wrong = append(wrong, fmt.Sprintf("at the end there is a command to start workload %s", m.Data.Workload))
		}
	})
	if err != nil {
		return nil, err
	}
	for _, g := range gangs {
		if !ended[g.ID] {
			wrong = append(wrong, fmt.Sprintf("no event tells the end of gang %s", g.Name))
		}
	}
	return wrong, nil
}

// each hands over what a stream has now of the subjects that match.
func (c *Checker) each(ctx context.Context, stream, filter string, from jetstream.DeliverPolicy, take func(message)) error {
	ctx, cancel := context.WithTimeout(ctx, 20*askTimeout)
	defer cancel()
	js, err := jetstream.New(c.NATS)
	if err != nil {
		return err
	}
	consumer, err := js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{filter}, DeliverPolicy: from})
	if err != nil {
		return fmt.Errorf("stream %s: %w", stream, err)
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		return fmt.Errorf("stream %s: %w", stream, err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("stream %s: %w", stream, err)
	}
	defer messages.Stop()
	for left := info.NumPending; left > 0; left-- {
		next, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("stream %s, with %d messages left: %w", stream, left, err)
		}
		var m message
		if err := json.Unmarshal(next.Data(), &m); err != nil {
			return fmt.Errorf("stream %s: unreadable message on %s: %w", stream, next.Subject(), err)
		}
		take(m)
	}
	return nil
}
