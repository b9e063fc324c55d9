package assistedrest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

const (
	infraEnvID = "988939b3-52d0-41d8-8790-25599548ce7a"
	clusterID  = "1f4a0d5c-65a6-4a47-8b0b-0c9d9e3a2d11"
)

// backend is an assisted-service that answers what a test wrote down, by method and path.
type backend struct {
	*WithT
	service *Service
	agent   hosts.Agent

	mu      sync.Mutex
	answers map[string]string
	calls   []call
}

type call struct{ request, token, body string }

func newBackend(t *testing.T, change ...func(o *Options)) *backend {
	t.Helper()
	b := &backend{WithT: NewWithT(t), answers: map[string]string{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	b.Expect(hiveext.AddToScheme(scheme)).To(Succeed())
	install := &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "install"}}
	install.Spec.ClusterDeploymentRef.Name = "c1"
	install.Spec.ClusterMetadata = &hivev1.ClusterMetadata{InfraID: clusterID}
	options := Options{
		URL: server.URL, Hub: fake.NewClientBuilder().WithScheme(scheme).WithObjects(install).Build(), PollInterval: time.Millisecond,
		ClusterToken: func(id string) (string, error) { return "token of cluster " + id, nil },
	}
	for _, f := range change {
		f(&options)
	}
	b.service = New(options)
	hardware := hosts.NewHardware("host")
	hardware.NICs[0].Addresses = []string{"192.168.111.20/24"}
	b.agent = hosts.Agent{
		AgentConfig: hosts.AgentConfig{ServiceURL: server.URL, InfraEnvID: infraEnvID, Token: "token of the agent", AgentVersion: "agent:1"},
		HostID:      hardware.UUID, Inventory: hardware.Inventory(),
	}
	return b
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	request := r.Method + " " + r.URL.Path
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, call{request, r.Header.Get("X-Secret-Key"), string(body)})
	answer, ok := b.answers[request]
	switch {
	case ok:
		_, _ = io.WriteString(w, answer)
	case r.Method == http.MethodGet:
		http.Error(w, `{"code":"404","reason":"host not found"}`, http.StatusNotFound)
	default:
		w.WriteHeader(http.StatusCreated)
	}
}

func (b *backend) hostPath() string {
	return "/api/assisted-install" + hostPath(infraEnvID, b.agent.HostID)
}

func (b *backend) on(request string, answer any) {
	encoded, err := json.Marshal(answer)
	b.Expect(err).NotTo(HaveOccurred())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[request] = string(encoded)
}

func (b *backend) called(request string) []call {
	b.mu.Lock()
	defer b.mu.Unlock()
	var matching []call
	for _, c := range b.calls {
		if c.request == request {
			matching = append(matching, c)
		}
	}
	return matching
}

func steps(action string, list ...map[string]any) map[string]any {
	return map[string]any{"post_step_action": action, "instructions": list}
}

func step(kind models.StepType, argument any) map[string]any {
	encoded, err := json.Marshal(argument)
	if err != nil {
		panic(err) // the argument is one of this file
	}
	return map[string]any{"step_type": kind, "step_id": string(kind) + "-1", "args": []string{string(encoded)}}
}

func TestRegister(t *testing.T) {
	b := newBackend(t)
	b.Expect(b.service.Register(t.Context(), b.agent)).To(Succeed())
	calls := b.called("POST /api/assisted-install/v2/infra-envs/" + infraEnvID + "/hosts")
	b.Expect(calls).To(HaveLen(1))
	b.Expect(calls[0].token).To(Equal("token of the agent"))
	b.Expect(calls[0].body).To(MatchJSON(`{"host_id":"` + b.agent.HostID + `","discovery_agent_version":"agent:1"}`))
}

func TestRefusals(t *testing.T) {
	g := NewWithT(t)
	for status, gone := range map[int]bool{401: true, 403: true, 404: true, 409: false, 500: false, 503: false} {
		err := statusError(status, []byte(`{"reason":"why"}`))
		g.Expect(err).To(MatchError(ContainSubstring("why")))
		g.Expect(errorsIsNotFound(err)).To(Equal(gone), "%d", status)
	}
	g.Expect(statusError(201, nil)).To(Succeed())
	b := newBackend(t)
	_, err := b.service.Next(t.Context(), b.agent)
	b.Expect(err).To(MatchError(hosts.ErrNotFound))
	b.agent.ServiceURL = "http://127.0.0.1:1"
	_, err = b.service.Next(t.Context(), b.agent)
	b.Expect(err).NotTo(MatchError(hosts.ErrNotFound))
	b.Expect(err).NotTo(MatchError(ContainSubstring("http")), "the error does not contain the URL, which may have secrets")
}

func TestExitAfterTheStepsAreAnswered(t *testing.T) {
	b := newBackend(t)
	b.on("GET "+b.hostPath()+"/instructions", steps("exit", step(models.StepTypeExecute, nil)))
	instruction, err := b.service.Next(t.Context(), b.agent)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(instruction.Kind).To(Equal(hosts.Exit))
	b.Expect(b.called("POST " + b.hostPath() + "/instructions")).To(HaveLen(1))
}

func TestAnswersAreNotRepeated(t *testing.T) {
	b := newBackend(t)
	b.Expect(b.service.Register(t.Context(), b.agent)).To(Succeed())
	polls := "GET " + b.hostPath() + "/instructions"
	b.on(polls, steps("continue", step(models.StepTypeNtpSynchronizer, nil), step("never-heard-of", nil)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = b.service.Next(ctx, b.agent)
	}()
	b.Eventually(func() int { return len(b.called(polls)) }).Should(BeNumerically(">", 5))
	cancel()
	<-ended
	answers := b.called("POST " + b.hostPath() + "/instructions")
	b.Expect(answers).To(HaveLen(2))
	b.Expect(answers[1].body).To(MatchJSON(`{"step_id":"never-heard-of-1","step_type":"never-heard-of"}`))
	b.Expect(b.service.Register(t.Context(), b.agent)).To(Succeed())
	b.Expect(b.service.answers[b.agent.HostID]).To(BeEmpty(), "after another registration all replies are sent again")
}

func TestInstallStep(t *testing.T) {
	b := newBackend(t)
	pointer := `{"ignition":{"version":"3.1.0","config":{"merge":[{"source":"https://192.168.111.5:22623/config/worker"},{"source":"data:,x"}]},` +
		`"security":{"tls":{}}},"storage":{"files":[{"path":"/etc/hostname"}]}}`
	for name, tc := range map[string]struct {
		order, host map[string]any
		pointer     any
		want        hosts.Instruction
	}{
		"bootstrap of a cluster": {
			order: map[string]any{"role": "bootstrap", "control_plane_count": 3, "installer_args": `["--copy-network"]`},
			host: map[string]any{
				"kind": "Host", "node_labels": `{"a":"b"}`, "ignition_config_overrides": "{}",
				"progress_stages": []string{"Installing"},
			},
			want: hosts.Instruction{
				Role: models.HostRoleMaster, Bootstrap: true, NodeLabels: map[string]string{"a": "b"}, IgnitionOverrides: "{}",
				InstallerArgs: `["--copy-network"]`, KnownStages: []models.HostStage{models.HostStageInstalling},
			},
		},
		"single node": {
			order: map[string]any{"role": "bootstrap", "control_plane_count": 1}, host: map[string]any{"kind": "Host"}, pointer: "data",
			want: hosts.Instruction{Role: models.HostRoleMaster, Bootstrap: true, SingleNode: true},
		},
		"worker of day 2 of a single node": {
			order: map[string]any{"role": "worker", "control_plane_count": 1}, host: map[string]any{"kind": "AddToExistingClusterHost"},
			pointer: json.RawMessage(pointer),
			want: hosts.Instruction{
				Role: models.HostRoleWorker, DayTwo: true,
				IgnitionOverrides: `{"ignition":{"config":{"merge":[{"source":"data:,x"}]},"version":"3.1.0"},` +
					`"storage":{"files":[{"path":"/etc/hostname"}]}}`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			tc.order["cluster_id"], tc.order["boot_device"] = clusterID, "/dev/disk/by-id/wwn-1"
			tc.host["id"], tc.host["requested_hostname"] = b.agent.HostID, "node-0"
			b.on("GET "+b.hostPath()+"/instructions", steps("continue", step(models.StepTypeInstall, tc.order)))
			b.on("GET /api/assisted-install/v2/clusters/"+clusterID, map[string]any{"id": clusterID, "hosts": []any{tc.host}})
			b.on("GET /api/assisted-install/v2/infra-env/"+infraEnvID+"/hosts/"+b.agent.HostID+"/downloads/ignition", tc.pointer)
			tc.want.Kind, tc.want.ClusterID, tc.want.ClusterNamespace, tc.want.ClusterName = hosts.Install, clusterID, "lab", "c1"
			tc.want.Hostname, tc.want.InstallationDisk = "node-0", "/dev/disk/by-id/wwn-1"
			instruction, err := b.service.Next(t.Context(), b.agent)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(instruction).To(Equal(tc.want))
		})
	}
}

func TestHookIsCalledOnceForEachPreparation(t *testing.T) {
	var prepared []Preparation
	b := newBackend(t, func(o *Options) {
		o.Preparing = func(_ context.Context, p Preparation) error {
			prepared = append(prepared, p)
			return nil
		}
	})
	order := &models.Steps{Instructions: []*models.Step{{
		StepType: models.StepTypeInstallationDiskSpeedCheck,
		Args:     []string{`{"path":"/dev/sda"}`},
	}}}
	b.on("GET /api/assisted-install/v2/infra-envs/"+infraEnvID+"/hosts", []any{map[string]any{"id": b.agent.HostID, "cluster_id": clusterID}})
	answered := func(status, preparation, since string) int {
		b.on("GET /api/assisted-install/v2/clusters/"+clusterID, map[string]any{
			"id": clusterID, "status": status, "status_updated_at": since, "last-installation-preparation": map[string]any{"status": preparation},
		})
		_, err := b.service.follow(t.Context(), b.agent, order)
		b.Expect(err).NotTo(HaveOccurred())
		return len(b.called("POST " + b.hostPath() + "/instructions"))
	}
	const first, second = "2026-01-01T10:00:00Z", "2026-01-01T10:01:00Z"
	b.Expect(answered("preparing-for-installation", "not_started", first)).To(Equal(0), "the service still writes the files")
	b.Expect(answered("preparing-for-installation", "success", first)).To(Equal(1))
	b.Expect(answered("preparing-for-installation", "success", first)).To(Equal(2))
	b.Expect(answered("preparing-for-installation", "success", second)).To(Equal(3))
	b.Expect(prepared).To(HaveLen(2))
	b.Expect(prepared[0].Deployment.String()).To(Equal("lab/c1"))
	b.Expect(prepared[1].Since).To(BeTemporally("==", time.Date(2026, 1, 1, 10, 1, 0, 0, time.UTC)))
}

func TestFinalize(t *testing.T) {
	b := newBackend(t)
	cluster := "/api/assisted-install/v2/clusters/" + clusterID
	b.on("GET "+cluster, map[string]any{
		"id": clusterID, "status": "finalizing", "monitored_operators": []any{map[string]any{"name": "console"}, map[string]any{"name": "cvo"}},
	})
	b.Expect(b.service.Finalize(t.Context(), clusterID)).To(Succeed())
	b.Expect(b.called("PUT " + cluster + "/monitored-operators")).To(HaveLen(2))
	b.Expect(b.called("POST " + cluster + "/actions/complete-installation")).To(HaveLen(1))
	uploads := b.called("POST " + cluster + "/uploads/ingress-cert")
	b.Expect(uploads).To(HaveLen(1))
	b.Expect(uploads[0].token).To(Equal("token of cluster " + clusterID))
	b.Expect(uploads[0].body).To(HavePrefix(`"-----BEGIN CERTIFICATE-----`))
	b.on("GET "+cluster, map[string]any{"id": clusterID, "status": "adding-hosts"})
	b.Expect(b.service.Finalize(t.Context(), clusterID)).To(Succeed())
	b.Expect(b.called("POST "+cluster+"/uploads/ingress-cert")).To(HaveLen(1), "the certificate is uploaded once")
}

func TestProgressOfTheHostAndOfTheController(t *testing.T) {
	b := newBackend(t)
	report := hosts.Report{AgentConfig: b.agent.AgentConfig, HostID: b.agent.HostID, Stage: models.HostStageRebooting, Info: "now"}
	b.Expect(b.service.Progress(t.Context(), report)).To(Succeed())
	report.ClusterID, report.Stage, report.Info = clusterID, models.HostStageDone, ""
	b.Expect(b.service.Progress(t.Context(), report)).To(Succeed())
	calls := b.called("PUT " + b.hostPath() + "/progress")
	b.Expect(calls).To(HaveLen(2))
	b.Expect(calls[0].body).To(MatchJSON(`{"current_stage":"Rebooting","progress_info":"now"}`))
	b.Expect(calls[0].token).To(Equal("token of the agent"))
	b.Expect(calls[1].token).To(Equal("token of cluster " + clusterID))
}
