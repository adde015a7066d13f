package proxy

import (
	"net"
	"sync"
)

// gate is a listener whose connections can be ended or frozen.
type gate struct {
	net.Listener

	mu    sync.Mutex
	mode  Mode
	open  map[*conn]bool
	moved chan struct{} // closed when mode changes
}

func newGate(l net.Listener) *gate {
	return &gate{Listener: l, open: map[*conn]bool{}, moved: make(chan struct{})}
}

func (g *gate) set(mode Mode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mode = mode
	close(g.moved)
	g.moved = make(chan struct{})
	if mode != Refuse {
		return
	}
	for c := range g.open {
		// Ends a stream that waits for data.
		_ = c.Conn.Close()
	}
}

// Accept implements net.Listener. While connections are refused, one that comes is ended at once: the port stays ours.
func (g *gate) Accept() (net.Conn, error) {
	for {
		accepted, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g.mu.Lock()
		if g.mode == Refuse {
			g.mu.Unlock()
			_ = accepted.Close()
			continue
		}
		c := &conn{Conn: accepted, gate: g, closed: make(chan struct{})}
		g.open[c] = true
		g.mu.Unlock()
		return c, nil
	}
}

type conn struct {
	net.Conn
	gate   *gate
	once   sync.Once
	closed chan struct{}
}

// pass waits while everything is frozen.
func (c *conn) pass() error {
	for {
		c.gate.mu.Lock()
		mode, moved := c.gate.mode, c.gate.moved
		c.gate.mu.Unlock()
		if mode == Refuse {
			return net.ErrClosed
		}
		if mode != Blackhole {
			return nil
		}
		select {
		case <-moved:
		case <-c.closed:
			return net.ErrClosed
		}
	}
}

func (c *conn) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	if wait := c.pass(); wait != nil {
		return 0, wait
	}
	return n, err
}

func (c *conn) Write(data []byte) (int, error) {
	if err := c.pass(); err != nil {
		return 0, err
	}
	return c.Conn.Write(data)
}

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.gate.mu.Lock()
		delete(c.gate.open, c)
		c.gate.mu.Unlock()
	})
	return c.Conn.Close()
}
