package faultproxy

import "strings"

// Request is a request of a client: a method, or WATCH, and the path of an object or of a list.
type Request struct{ Method, Path string }

// TakeRequests returns the number of each request since the last call, with and without faults.
func (c *Connection) TakeRequests() map[Request]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := c.requests
	c.requests = map[Request]int{}
	return requests
}

// Writes returns the number of writes that were forwarded to the server.
func (c *Connection) Writes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// countRequest counts a request.
func (c *Connection) countRequest(method, path string, v verb) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v == watches {
		method = "WATCH"
	}
	c.requests[Request{method, strings.TrimSuffix(path, "/")}]++
}

// countWrite counts a request with a verb that writes.
func (c *Connection) countWrite(v verb) {
	if v != creates && v != changes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
}
