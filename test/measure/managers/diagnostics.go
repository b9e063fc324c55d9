package managers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
)

// diagnosticsArgs make a manager serve diagnostics like a shipped manager, with TLS and authorization. Only then it
// serves profiles.
var diagnosticsArgs = []string{"--insecure-diagnostics=false"}

// diagnostics reads metrics and profiles of managers.
type diagnostics struct {
	client *http.Client
	token  string
}

// newDiagnostics creates an account that is authorized to read diagnostics.
func newDiagnostics(ctx context.Context, hub client.Client) (*diagnostics, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "measurement"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	for _, obj := range []client.Object{account, binding} {
		if err := hub.Create(ctx, obj); client.IgnoreAlreadyExists(err) != nil {
			return nil, fmt.Errorf("cannot create %T %s: %w", obj, obj.GetName(), err)
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := hub.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("cannot create a token for the diagnostics: %w", err)
	}
	return &diagnostics{
		token: request.Status.Token,
		// the certificate of a manager is self-signed
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}},
	}, nil
}

// get reads a path of a manager.
func (d *diagnostics) get(ctx context.Context, p *process.Process, path string) (io.ReadCloser, error) {
	url := strings.TrimSuffix(strings.Replace(p.MetricsURL, "http://", "https://", 1), "/metrics") + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot read diagnostics of %s: %w", p.Name, err)
	}
	request.Header.Set("Authorization", "Bearer "+d.token)
	response, err := d.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot read diagnostics of %s: %w", p.Name, err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("%s answers %s to %s", p.Name, response.Status, path)
	}
	return response.Body, nil
}

// await waits until a started manager answers. It is ready shortly before.
func (d *diagnostics) await(ctx context.Context, p *process.Process) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		var answer io.ReadCloser
		if answer, last = d.get(ctx, p, "/metrics"); last != nil {
			return false, nil //nolint:nilerr // not yet
		}
		return true, answer.Close()
	})
	return errors.Join(err, last)
}

// heap makes a manager collect its garbage, and writes a heap profile.
func (d *diagnostics) heap(ctx context.Context, p *process.Process, path string) error {
	return d.write(ctx, p, "/debug/pprof/heap?gc=1", path)
}

// cpu writes a CPU profile of a duration.
func (d *diagnostics) cpu(ctx context.Context, p *process.Process, lasting time.Duration, path string) error {
	return d.write(ctx, p, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(lasting.Seconds())), path)
}

func (d *diagnostics) write(ctx context.Context, p *process.Process, source, path string) error {
	profile, err := d.get(ctx, p, source)
	if err != nil {
		return err
	}
	defer profile.Close()
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("cannot write a profile: %w", err)
	}
	defer file.Close()
	if _, err := io.Copy(file, profile); err != nil {
		return fmt.Errorf("cannot write a profile: %w", err)
	}
	return nil
}

// gauges reads metrics with one value each.
func (d *diagnostics) gauges(ctx context.Context, p *process.Process, names ...string) (map[string]float64, error) {
	body, err := d.get(ctx, p, "/metrics")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return nil, fmt.Errorf("cannot read the metrics of %s: %w", p.Name, err)
	}
	values := map[string]float64{}
	for _, name := range names {
		metrics := families[name].GetMetric()
		if len(metrics) != 1 || metrics[0].GetGauge() == nil {
			return nil, fmt.Errorf("%s has no metric %s", p.Name, name)
		}
		values[name] = metrics[0].GetGauge().GetValue()
	}
	return values, nil
}
