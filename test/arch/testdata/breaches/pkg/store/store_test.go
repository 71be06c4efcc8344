package store

import _ "muster.dev/muster/pkg/testkit/pgtest" // a test may
