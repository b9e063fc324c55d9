package seed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// etcd is a client of the JSON gateway of etcd.
type etcd struct {
	url    string
	client *http.Client
}

// pair is a key with its value. Both are base64 in JSON, as the gateway requires.
type pair struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value,omitempty"`
}

// operation is an operation of a transaction.
type operation struct {
	Put    *pair `json:"requestPut,omitempty"`
	Delete *pair `json:"requestDeleteRange,omitempty"`
}

// list returns all keys with a prefix, and their values.
func (e *etcd) list(ctx context.Context, prefix string) ([]pair, error) {
	end := []byte(prefix)
	end[len(end)-1]++ // the next prefix
	var answer struct{ KVs []pair }
	err := e.post(ctx, "/v3/kv/range", map[string][]byte{"key": []byte(prefix), "range_end": end}, &answer)
	return answer.KVs, err
}

// write executes operations in one transaction, and returns its revision, which is the resource version of the written
// objects.
func (e *etcd) write(ctx context.Context, operations []operation) (revision string, err error) {
	var answer struct{ Header struct{ Revision string } }
	if err := e.post(ctx, "/v3/kv/txn", map[string][]operation{"success": operations}, &answer); err != nil {
		return "", err
	}
	if _, err := strconv.ParseInt(answer.Header.Revision, 10, 64); err != nil {
		return "", fmt.Errorf("etcd returned no revision of a write: %w", err)
	}
	return answer.Header.Revision, nil
}

func (e *etcd) post(ctx context.Context, path string, content, answer any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("cannot encode a request to etcd: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("cannot create a request to etcd: %w", err)
	}
	response, err := e.client.Do(request)
	if err != nil {
		return fmt.Errorf("cannot send a request to etcd: %w", err)
	}
	defer response.Body.Close()
	received, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("cannot read the answer of etcd: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s: %s", response.Status, received)
	}
	if err := json.Unmarshal(received, answer); err != nil {
		return fmt.Errorf("cannot decode the answer of etcd: %w", err)
	}
	return nil
}
