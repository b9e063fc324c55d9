package bootmode

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reach"
)

const (
	// discoveryTimeout bounds a download as a whole.
	discoveryTimeout = 10 * time.Second
	// discoveryLimit is far above the 10 KiB of a discovery ignition, static networks and trust bundles included.
	discoveryLimit = 4 << 20
	// discoveryRedirects is the maximum number of redirects.
	discoveryRedirects = 3
)

// downloadIgnition downloads the discovery ignition of an InfraEnv. rawURL may hold credentials, and appears
// in no error. caBundles hold PEM certificates that are trusted in addition to those of the system; empty ones are
// ignored.
func downloadIgnition(ctx context.Context, rawURL string, caBundles ...[]byte) (Data, error) {
	client, err := discoveryClient(caBundles)
	if err != nil {
		return Data{}, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return Data{}, errors.New("assisted-service gives no valid URL for the discovery ignition")
	}
	response, err := client.Do(request)
	if err != nil {
		return Data{}, fmt.Errorf("cannot reach %s: %w", request.URL.Host, withoutURL(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return Data{}, fmt.Errorf("%s answers %d %s", request.URL.Host, response.StatusCode, http.StatusText(response.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, discoveryLimit+1))
	if err != nil {
		return Data{}, fmt.Errorf("cannot read the answer of %s: %w", request.URL.Host, withoutURL(err))
	}
	if len(body) > discoveryLimit {
		return Data{}, fmt.Errorf("%s answers with more than %d MiB", request.URL.Host, discoveryLimit>>20)
	}
	return Data{Value: body, Modified: response.Header.Get("Last-Modified")}, nil
}

func discoveryClient(caBundles [][]byte) (*http.Client, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	for _, bundle := range caBundles {
		if len(bundle) > 0 && !roots.AppendCertsFromPEM(bundle) {
			return nil, errors.New("the certificate authority holds no PEM certificate")
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			MaxResponseHeaderBytes: bound.HeaderBytes, OnProxyConnectResponse: reach.ProxyAnswer,
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: checkRedirect,
	}, nil
}

// checkRedirect refuses redirects to another scheme, host or port than in the URL of assisted-service. The
// downloaded ignition runs as root on the host, and the URL may hold credentials.
func checkRedirect(request *http.Request, via []*http.Request) error {
	if origin, next := originOf(via[0].URL), originOf(request.URL); origin != next {
		return fmt.Errorf(
			"it redirects to %s, and only redirects within %s are followed: correct the URL of assisted-service, or the proxy before it",
			next,
			origin,
		)
	}
	if len(via) > discoveryRedirects {
		return fmt.Errorf("more than %d redirects", discoveryRedirects)
	}
	return nil
}

// originOf returns only scheme, host and port of a URL.
func originOf(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// withoutURL unwraps the errors of net/http, whose text holds the whole URL.
func withoutURL(err error) error {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		if urlError.Timeout() {
			return errors.New("time-out")
		}
		return urlError.Err
	}
	return err
}
