package service

import (
	"bytes"
	"log"

	"go.uber.org/zap"
)

// HTTPErrorLog logs net/http's connection errors as warnings with one constant text,
// so that the log throttles them: any client that reaches the address can cause them,
// for example by failing TLS handshakes.
func HTTPErrorLog(logger *zap.Logger) *log.Logger { return log.New(connectionErrors{logger}, "", 0) }

type connectionErrors struct{ logger *zap.Logger }

func (c connectionErrors) Write(line []byte) (int, error) {
	c.logger.Warn("HTTP connection failed", zap.ByteString("error", bytes.TrimSpace(line)))
	return len(line), nil
}
