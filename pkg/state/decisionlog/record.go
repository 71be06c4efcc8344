package decisionlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Recorder writes inputs down until they are taken. It is not safe for concurrent
// use.
type Recorder struct {
	buffer bytes.Buffer
	number int64
}

// Note writes an input down: a line of JSON, the length of the message, and the
// message.
func (r *Recorder) Note(in Input) {
	in.At = in.At.UTC()
	line, err := json.Marshal(in)
	if err != nil {
		panic("an input cannot be encoded: " + err.Error()) // it is plain data
	}
	r.buffer.Write(line)
	r.buffer.WriteByte('\n')
	r.buffer.WriteString(strconv.Itoa(len(in.Message)))
	r.buffer.WriteByte('\n')
	r.buffer.Write(in.Message)
}

// Size is how many bytes have not been taken yet.
func (r *Recorder) Size() int { return r.buffer.Len() }

// Flush returns what was noted since the last Flush, and its number in the term.
func (r *Recorder) Flush() (number int64, inputs []byte) {
	number, inputs = r.number, bytes.Clone(r.buffer.Bytes())
	r.number++
	r.buffer.Reset()
	return number, inputs
}

// Inputs reads what a Recorder wrote.
func Inputs(recorded []byte) ([]Input, error) {
	reader := bufio.NewReader(bytes.NewReader(recorded))
	var inputs []Input
	for {
		in, err := readInput(reader)
		if errors.Is(err, io.EOF) {
			return inputs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("recorded input %d: %w", len(inputs)+1, err)
		}
		inputs = append(inputs, in)
	}
}

// readInput returns io.EOF only between two inputs.
func readInput(reader *bufio.Reader) (in Input, err error) {
	line, err := reader.ReadBytes('\n')
	if errors.Is(err, io.EOF) && len(line) == 0 {
		return in, io.EOF
	}
	if err != nil {
		return in, errors.New("it has no end")
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return in, err
	}
	text, err := reader.ReadString('\n')
	if err != nil {
		return in, errors.New("the length of its message is missing")
	}
	size, err := strconv.Atoi(text[:len(text)-1])
	if err != nil || size < 0 || size > maxMessage {
		return in, fmt.Errorf("%q is not the length of a message", text)
	}
	if size == 0 {
		return in, nil
	}
	in.Message = make([]byte, size)
	if n, err := io.ReadFull(reader, in.Message); err != nil {
		return in, fmt.Errorf("its message has %d of %d bytes", n, size)
	}
	return in, nil
}

// maxMessage bounds what a damaged length may have allocated; NATS takes no
// larger message.
const maxMessage = 64 << 20
