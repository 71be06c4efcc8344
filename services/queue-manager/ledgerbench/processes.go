package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// processPatience bounds a start and a take-over.
const processPatience = 3 * time.Minute

// takeOvers measures starts and take-overs of real processes with the workloads
// that wait in the database.
func takeOvers(ctx context.Context, url string, waiting int) error {
	dir, err := os.MkdirTemp("", "muster-ledgerbench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s := &site{ctx: ctx, dir: dir, url: url}
	if err := s.open(); err != nil {
		return err
	}
	defer s.server.Stop()
	defer s.bus.Close()
	fmt.Printf("\nThe service as processes, %d waiting\n", waiting)
	began := time.Now()
	first, err := s.start()
	if err != nil {
		return err
	}
	defer first.stop()
	now, peak := residentOf(first.cmd.Process.Pid)
	fmt.Printf("  start to ready to decide           %s   %d MB resident, %d MB at its peak\n", time.Since(began).Round(10*time.Millisecond), megabytes(now), megabytes(peak))
	second, err := s.replaceBeginner(first)
	if err != nil {
		return err
	}
	first = second
	defer first.stop()
	if err := s.quiet(); err != nil {
		return err
	}
	fmt.Printf("  until a checkpoint is stored and all commands are repeated to a NATS without data %s\n", time.Since(began).Round(10*time.Millisecond))
	if second, err = s.start(); err != nil {
		return err
	}
	defer second.stop()
	if first, err = s.replaceLeaders(first, second); err != nil {
		return err
	}
	defer first.stop()
	now, peak = residentOf(first.cmd.Process.Pid)
	fmt.Printf("  memory of the successor            %d MB resident, %d MB at its peak\n", megabytes(now), megabytes(peak))
	second.stop() // it would load the state again meanwhile
	if err := s.quiet(); err != nil {
		return err
	}
	return s.outbox()
}

// replaceBeginner measures a take-over from a leader whose term begins: it still repeats commands
// and stores its checkpoint. The standby has read the state. It returns the successor.
func (s *site) replaceBeginner(first *process) (successor *process, err error) {
	if err := s.node(); err != nil {
		return nil, err
	}
	if _, err := s.admission(); err != nil {
		return nil, err
	}
	if successor, err = s.start(); err != nil {
		return nil, err
	}
	still, err := s.busy()
	if err == nil {
		err = s.takeOver(still+"killed (SIGKILL)", first, syscall.SIGKILL)
	}
	if err != nil {
		successor.stop()
		return nil, err
	}
	first.stop()
	return successor, nil
}

// busy returns what a leader has not done yet of the beginning of its term, as words of a line.
func (s *site) busy() (words string, err error) {
	conn, err := pgx.Connect(s.ctx, s.url)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(s.ctx)) }()
	var commands int
	var stored bool
	if err := conn.QueryRow(s.ctx, `SELECT (SELECT count(*) FROM outbox), EXISTS (SELECT FROM bases)`).Scan(&commands, &stored); err != nil {
		return "", err
	}
	if commands == 0 && stored {
		return "whose term has begun ", nil
	}
	return fmt.Sprintf("with %d messages to publish and checkpoint stored: %t, ", commands, stored), nil
}

// replaceLeaders measures two take-overs: the leader is killed, and the next one paused. It
// returns the successor of the second.
func (s *site) replaceLeaders(first, second *process) (successor *process, err error) {
	if err := s.takeOver("killed (SIGKILL)", first, syscall.SIGKILL); err != nil {
		return nil, err
	}
	first.stop()
	if successor, err = s.start(); err != nil {
		return nil, err
	}
	if err := s.takeOver("paused (SIGSTOP)", second, syscall.SIGSTOP); err != nil {
		successor.stop()
		return nil, err
	}
	return successor, nil
}

// takeOver sends a signal to the leader and prints when the standby has admitted a gang.
func (s *site) takeOver(fault string, leader *process, signal syscall.Signal) error {
	if err := leader.cmd.Process.Signal(signal); err != nil {
		return err
	}
	took, err := s.admission()
	if err != nil {
		return err
	}
	fmt.Printf("  leader %s: next gang admitted and reported by the standby after %s\n", fault, took.Round(10*time.Millisecond))
	return nil
}
