// Package checker is an example of the controller of an AdmissionCheck that is asked by message
// (docs/checks.md). It uses nothing of Muster: what it reads and writes is JSON on NATS. It is
// not for more than to be copied.
package checker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Wanted is what it reads of a request; there is more in one.
type Wanted struct {
	Check     string `json:"check"`
	Workload  string `json:"workload"`
	Number    int    `json:"number"`
	State     string `json:"state"` // "open", "answered", "closed"
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	PodSets   []struct {
		Name     string           `json:"name"`
		Count    int64            `json:"count"`
		Requests map[string]int64 `json:"requests"`
	} `json:"podSets"`
	Answer *struct {
		Refused string `json:"refused"`
	} `json:"answer"`
}

// Answer is what it answers.
type Answer struct {
	Check             string   `json:"check"`
	Workload          string   `json:"workload"`
	Number            int      `json:"number"`
	Status            string   `json:"status"` // "Pending", "Ready", "Retry", "Rejected"
	Message           string   `json:"message,omitempty"`
	RetryAfterSeconds int64    `json:"retryAfterSeconds,omitempty"`
	PodSetUpdates     []Update `json:"podSetUpdates,omitempty"`
}

// Update is what an answer adds to the pods of a pod set.
type Update struct {
	PodSet       string            `json:"name"`
	Labels       map[string]string `json:"labels,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Tolerations  []Toleration      `json:"tolerations,omitempty"`
}

// Toleration is one of Kubernetes.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// Run answers what a check is asked, by decide, until ctx ends. What is open when it begins is
// asked, too: the server delivers the last value of each subject first.
func Run(ctx context.Context, nc *nats.Conn, check string, decide func(Wanted) Answer) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	consumer, err := js.OrderedConsumer(ctx, "MUSTER_DISPATCH", jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{"muster.check." + check + ".*"}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	})
	if err != nil {
		return fmt.Errorf("read what check %s is asked: %w", check, err)
	}
	failed := make(chan error, 1)
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		var event struct {
			Data Wanted `json:"data"`
		}
		err := json.Unmarshal(m.Data(), &event)
		if wanted := event.Data; err == nil && wanted.State == "open" {
			answer := decide(wanted)
			answer.Check, answer.Workload, answer.Number = wanted.Check, wanted.Workload, wanted.Number
			err = publish(ctx, js, answer)
		}
		if err != nil {
			select {
			case failed <- err:
			default:
			}
		}
	})
	if err != nil {
		return fmt.Errorf("read what check %s is asked: %w", check, err)
	}
	defer consuming.Stop()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// publish returns when NATS has stored the answer.
func publish(ctx context.Context, js jetstream.JetStream, answer Answer) error {
	data, err := json.Marshal(map[string]any{
		"specversion": "1.0", "id": fmt.Sprintf("%s/%d/%s/%d", answer.Workload, answer.Number, answer.Status, time.Now().UnixNano()),
		"source": answer.Check, "type": "dev.muster.check.answer.v1", "datacontenttype": "application/json", "data": answer,
	})
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	if _, err := js.Publish(ctx, "muster.checked."+answer.Check, data); err != nil {
		return fmt.Errorf("answer about workload %s: %w", answer.Workload, err)
	}
	return nil
}
