package process

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Probe returns a check, for [Process.Ready], that succeeds when url answers with status 200.
func Probe(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, logTail))
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", response.Status, body)
		}
		return nil
	}
}
