package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// letter is a message that is to be kept as a dead letter.
type letter struct {
	bus.Delivery
	reason string
}

// DeadLetters is where messages go that cannot be processed.
type DeadLetters interface {
	// StoreDeadLetter keeps a message as a dead letter. The error wraps bus.ErrNotKept when the
	// server answers that it does not.
	StoreDeadLetter(ctx context.Context, d bus.Delivery, reason string) error
	// KeepUndelivered keeps in the ledger a dead letter that the server does not keep.
	KeepUndelivered(ctx context.Context, d bus.Delivery, reason string) error
}

// NameLost keeps the last event of each workload that the ledger has lost as a dead
// letter, for people to look at. When NATS does not answer the term ends: no relay has
// moved the watermarks of the streams yet, so the next term finds the workloads again.
// What NATS refuses is kept in the ledger and returned, to be tried again.
func (s *Step) NameLost(ctx context.Context, r Recovered, to DeadLetters) (again []letter, err error) {
	for _, l := range r.Ended {
		s.Logger.Warn("database has lost the record of an ended workload", zap.String("workload", string(l.ID)), zap.String("queue", l.Queue),
			zap.String("name", l.Name), zap.String("phase", string(l.Phase)))
		reason := fmt.Sprintf("the database was restored to an older state and has no record of %s %s/%s, which had %s", l.Kind, l.Namespace, l.Name, l.Phase)
		if refused, err := s.keepDead(ctx, l, reason, to); err != nil {
			return nil, err
		} else if refused {
			again = append(again, letter{l.Delivery, reason})
		}
	}
	for _, l := range r.Lost {
		s.Logger.Error("database has lost a workload; it must be submitted again", zap.String("workload", string(l.ID)),
			zap.String("queue", l.Queue), zap.String("name", l.Name), zap.Time("submitted", l.Times.Submitted))
		reason := fmt.Sprintf("%s %s/%s of queue %s was %s and is lost: the database was restored to an older state, and NATS does not have the submission any more; submit it again",
			l.Kind, l.Namespace, l.Name, l.Queue, l.Phase)
		if refused, err := s.keepDead(ctx, l, reason, to); err != nil {
			return nil, err
		} else if refused {
			again = append(again, letter{l.Delivery, reason})
		}
	}
	for _, u := range r.Unasked {
		s.Logger.Error("database has lost a request about a workload; repeat the request", zap.String("workload", string(u.ID)),
			zap.String("queue", u.Queue), zap.String("name", u.Name), zap.String("was", u.Lacks))
		reason := fmt.Sprintf("%s %s/%s of queue %s was %s, which is lost: the database was restored to an older state, and the workload's present phase does not allow repeating the request; request it again",
			u.Kind, u.Namespace, u.Name, u.Queue, u.Lacks)
		if refused, err := s.keepDead(ctx, u.Lost, reason, to); err != nil {
			return nil, err
		} else if refused {
			again = append(again, letter{u.Delivery, reason})
		}
	}
	return again, nil
}

// keepDead keeps one dead letter. The ledger keeps what NATS refuses. What both refuse
// is only in the log: a term that ended for it would end for it every time.
func (s *Step) keepDead(ctx context.Context, l Lost, reason string, to DeadLetters) (refused bool, err error) {
	err = to.StoreDeadLetter(ctx, l.Delivery, reason)
	if err == nil {
		return false, nil
	}
	if !errors.Is(err, bus.ErrNotKept) {
		return false, fmt.Errorf("keep workload %s as a dead letter: %w", l.ID, err)
	}
	fields := []zap.Field{zap.String("workload", string(l.ID)), zap.String("reason", reason), zap.Error(err)}
	switch err := to.KeepUndelivered(ctx, l.Delivery, reason); {
	case err == nil:
		s.Logger.Error("cannot dead-letter a lost workload; kept in the table undelivered", fields...)
	case store.Suspect(err):
		s.Logger.Error("cannot keep a lost workload in NATS or in the database", append(fields, zap.NamedError("refusal", err))...)
	default:
		return false, fmt.Errorf("keep workload %s, which NATS refuses as a dead letter: %w", l.ID, err)
	}
	return true, nil
}

// The pauses between tries of refused letters double from letterFirst to letterMost.
const (
	letterFirst = 10 * time.Second
	letterMost  = 10 * time.Minute
)

// retryLetters publishes dead letters that NATS has refused, until it has all or the
// term ends.
func retryLetters(ctx context.Context, again []letter, to DeadLetters, logger *zap.Logger) {
	for after := letterFirst; len(again) > 0; after = min(2*after, letterMost) {
		if pause.For(ctx, after) != nil {
			return
		}
		before := len(again)
		again = slices.DeleteFunc(again, func(l letter) bool { return to.StoreDeadLetter(ctx, l.Delivery, l.reason) == nil })
		if len(again) < before {
			logger.Info("stored dead letters that NATS had refused", zap.Int("kept", before-len(again)), zap.Int("left", len(again)))
		}
	}
}

// deadLetter gives a message up and keeps it with the reason. A last value stays where
// it is.
func (s *Step) deadLetter(ctx context.Context, d bus.Delivery, reason string) {
	s.Unreadable.Inc()
	s.Logger.Error("message dead-lettered", zap.String("subject", d.Subject), zap.Uint64("sequence", d.Sequence), zap.String("reason", reason))
	if d.Settles() {
		s.DeadLetter(ctx, d, reason)
	}
}

// message identifies a message by its content. A sequence number would not do: a stream
// that is created again counts from 1.
type message struct {
	subject string
	digest  [sha256.Size]byte
}

func messageOf(d bus.Delivery) message { return message{d.Subject, sha256.Sum256(d.Data)} }

// poison are the messages that have ended a term of this process, with the reason. They
// must not end the next one; another process finds out for itself.
type poison map[message]string

func (p poison) add(d bus.Delivery, reason string) { p[messageOf(d)] = reason }

func (p poison) cause(d bus.Delivery) (reason string, known bool) {
	reason, known = p[messageOf(d)]
	return reason, known
}
