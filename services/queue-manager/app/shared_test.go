package app

import (
	"context"
	"testing"
)

// TestSharedAnswersBeginAfterTheirQuestions: those who ask while an answer is made share the next
// one, which sees what they have changed.
func TestSharedAnswersBeginAfterTheirQuestions(t *testing.T) {
	t.Parallel()
	begun, answer := make(chan int), make(chan struct{})
	made := 0
	s := &shared[int]{collect: func() (int, error) {
		made++
		begun <- made
		<-answer
		return made, nil
	}}
	got := make(chan int)
	asks := func() {
		value, err := s.ask(t.Context())
		if err != nil {
			t.Error(err)
		}
		got <- value
	}
	go asks()
	<-begun
	left, leave := context.WithCancel(t.Context())
	leave()
	for range 20 { // who leave count as those who stay
		if _, err := s.ask(left); err == nil {
			t.Error("an answer for a caller who has left")
		}
	}
	answer <- struct{}{}
	if value := <-got; value != 1 {
		t.Errorf("the first gets answer %d", value)
	}
	if second := <-begun; second != 2 {
		t.Errorf("then answer %d is made", second)
	}
	go asks()
	answer <- struct{}{}
	if third := <-begun; third != 3 {
		t.Errorf("for who asked then answer %d is made", third)
	}
	answer <- struct{}{}
	if value := <-got; value != 3 {
		t.Errorf("who asked while the second was made gets answer %d", value)
	}
}
