package assistedservice

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// eventually is the timeout for operations that controllers do at once.
const eventually = 3 * time.Minute

// rack is the namespace of these tests, and the prefix of their objects.
const rack = "rack"

func TestAssistedService(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the first run builds everything
	defer cancel()
	e, err := env.Start(ctx, env.Options{Out: t.Output(), LeaveSignals: true, NoManagers: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Stop)
	service, err := Start(ctx, e, Options{Auth: AuthLocal})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = Start(ctx, e, Options{})
	g.Expect(err).To(MatchError(ContainSubstring("already")))
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rack}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: rack, Name: rack},
			Type:       corev1.SecretTypeDockerConfigJson,
			Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"quay.io":{"auth":"dXNlcjpwYXNzd29yZA=="}}}`)},
		},
	} {
		g.Expect(e.Client().Create(ctx, object)).To(Succeed())
	}
	var install *hiveext.AgentClusterInstall

	t.Run("an InfraEnv gets its URLs, and the ignition behind one of them is served", func(t *testing.T) {
		checkInfraEnv(ctx, t, e, service, "first")
	})
	t.Run("removed fields of an InfraEnv are kept, except kernel arguments", func(t *testing.T) {
		checkWithdrawal(ctx, t, e, service)
	})
	t.Run("an AgentClusterInstall becomes a cluster of the service", func(t *testing.T) {
		install = checkInstall(ctx, t, e, service)
	})
	t.Run("changes of the objects of a registered cluster", func(t *testing.T) {
		checkRegistrations(ctx, t, e, service)
	})
	t.Run("a webhook refuses another image set", func(t *testing.T) {
		changed := install.DeepCopy()
		changed.Spec.ImageSetRef = &hivev1.ClusterImageSetReference{Name: "other"}
		err := e.Client().Patch(ctx, changed, client.MergeFrom(install)) // an update may conflict with one of the service
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("ImageSetRef which is immutable")))
	})
	t.Run("the kubeconfig of a preparation is replaced, not that of an earlier one", func(t *testing.T) {
		checkKubeconfig(t, service)
	})
	for name, p := range map[string]*process.Process{
		"service": service.Process(), "database": service.Database(),
		"admission": service.Admission(),
	} {
		for how, end := range map[string]func(){"stopped": p.Stop, "killed": p.Kill} {
			t.Run(name+" "+how+" and started: nothing is lost", func(t *testing.T) {
				end()
				NewWithT(t).Expect(p.Start(ctx)).To(Succeed())
				checkCluster(ctx, t, service, install)
				checkInfraEnv(ctx, t, e, service, name+"-"+how)
			})
		}
	}
}

func checkInfraEnv(ctx context.Context, t *testing.T, e *env.Env, service *Service, name string) {
	g, c := NewWithT(t), e.Client()
	infraEnv := &aiv1beta1.InfraEnv{
		ObjectMeta: metav1.ObjectMeta{Namespace: rack, Name: name},
		Spec:       aiv1beta1.InfraEnvSpec{PullSecretRef: &corev1.LocalObjectReference{Name: rack}, OSImageVersion: "4.19"},
	}
	// The API server may still use a connection to the previous admission server, and returns an error then.
	g.Eventually(func() error {
		return client.IgnoreAlreadyExists(c.Create(ctx,
			infraEnv.DeepCopy()))
	}).WithTimeout(eventually).Should(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(revive(ctx, service)).To(Succeed())
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(infraEnv), infraEnv)).To(Succeed())
		created := conditionsv1.FindStatusCondition(infraEnv.Status.Conditions, aiv1beta1.ImageCreatedCondition)
		g.Expect(created).NotTo(BeNil())
		g.Expect(created.Status).To(Equal(corev1.ConditionTrue), created.Message)
		g.Expect(infraEnv.Status.ISODownloadURL).To(MatchRegexp(`/byapikey/[^/]+/4\.19/x86_64/minimal\.iso$`))
	}).WithTimeout(eventually).Should(Succeed())
	ignition := get(ctx, g, service, infraEnv.Status.BootArtifacts.DiscoveryIgnitionURL, "")
	g.Expect(json.Valid(ignition)).To(BeTrue())
	g.Expect(string(ignition)).To(ContainSubstring("agent.service"))
}

// checkWithdrawal shows why the bootstrap provider recreates an InfraEnv whose fields are removed.
func checkWithdrawal(ctx context.Context, t *testing.T, e *env.Env, service *Service) {
	g, c := NewWithT(t), e.Client()
	infraEnv := &aiv1beta1.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: rack, Name: "withdrawn"}, Spec: aiv1beta1.InfraEnvSpec{
		PullSecretRef: &corev1.LocalObjectReference{Name: rack}, OSImageVersion: "4.19",
		SSHAuthorizedKey:       "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZvcm1lcmZvcm1lcmZvcm1lcmZvcm1lcmZvcm1lcmZv former",
		Proxy:                  &aiv1beta1.Proxy{HTTPProxy: "http://former.example.com", NoProxy: "former.example.com"},
		IgnitionConfigOverride: `{"ignition":{"version":"3.1.0"}}`,
		AdditionalNTPSources:   []string{"former.example.com"},
		KernelArguments:        []aiv1beta1.KernelArgument{{Operation: models.KernelArgumentOperationAppend, Value: "former"}},
	}}
	g.Expect(c.Create(ctx, infraEnv)).To(Succeed())
	registered := func(g Gomega) (known models.InfraEnv) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(infraEnv), infraEnv)).To(Succeed())
		ignition, err := url.Parse(infraEnv.Status.BootArtifacts.DiscoveryIgnitionURL)
		g.Expect(err).NotTo(HaveOccurred())
		id, _, _ := strings.Cut(strings.TrimPrefix(ignition.Path, "/api/assisted-install/v2/infra-envs/"), "/")
		g.Expect(id).NotTo(BeEmpty())
		g.Expect(json.Unmarshal(get(ctx, g, service, service.URL()+"/api/assisted-install/v2/infra-envs/"+id, ignition.Query().Get("api_key")),
			&known)).To(Succeed())
		return known
	}
	g.Eventually(func(g Gomega) { g.Expect(registered(g).KernelArguments).To(HaveValue(ContainSubstring("former"))) }).
		WithTimeout(eventually).Should(Succeed())

	before := infraEnv.DeepCopy()
	infraEnv.Spec = aiv1beta1.InfraEnvSpec{PullSecretRef: before.Spec.PullSecretRef, OSImageVersion: before.Spec.OSImageVersion}
	g.Expect(c.Patch(ctx, infraEnv, client.MergeFrom(before))).To(Succeed())
	var known models.InfraEnv
	g.Eventually(func(g Gomega) {
		known = registered(g)
		g.Expect(known.KernelArguments).To(Or(BeNil(), HaveValue(Or(BeEmpty(), Equal("[]")))))
	}).WithTimeout(eventually).Should(Succeed(), "these fields can be cleared")
	g.Expect(known.SSHAuthorizedKey).To(Equal(before.Spec.SSHAuthorizedKey))
	g.Expect(known.IgnitionConfigOverride).To(Equal(before.Spec.IgnitionConfigOverride))
	g.Expect(known.AdditionalNtpSources).To(Equal("former.example.com"))
	g.Expect(known.Proxy).To(HaveValue(And(HaveField("HTTPProxy", HaveValue(Equal("http://former.example.com"))),
		HaveField("NoProxy", HaveValue(Equal("former.example.com"))))))
}

func checkInstall(ctx context.Context, t *testing.T, e *env.Env, service *Service) *hiveext.AgentClusterInstall {
	g, c := NewWithT(t), e.Client()
	image := "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat("0", 64)
	g.Expect(service.SetRelease(image, "4.19.10", "x86_64")).To(Succeed())
	deployment, install := stated(rack)
	imageSet := &hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: rack}, Spec: hivev1.ClusterImageSetSpec{ReleaseImage: image}}
	for _, object := range []client.Object{imageSet, deployment, install} {
		g.Expect(c.Create(ctx, object)).To(Succeed())
	}
	g.Eventually(func(g Gomega) {
		condition := synced(ctx, g, c, install)
		g.Expect(condition.Status).To(Equal(corev1.ConditionTrue), condition.Message)
		g.Expect(install.Status.DebugInfo.EventsURL).NotTo(BeEmpty())
	}).WithTimeout(eventually).Should(Succeed())
	checkCluster(ctx, t, service, install)
	return install
}

// checkCluster requests a cluster from the service like the controller in the cluster.
func checkCluster(ctx context.Context, t *testing.T, service *Service, install *hiveext.AgentClusterInstall) {
	g := NewWithT(t)
	cluster := known(ctx, g, service, install)
	g.Expect(cluster.Name).To(Equal(rack))
	g.Expect(cluster.OpenshiftVersion).To(Equal("4.19.10"))
}

// revive starts the service again if it panicked, like a kubelet. The service may panic if its database stops
// during a reconcile of an InfraEnv (internal/bminventory/inventory.go, createAndUploadNewImage).
func revive(ctx context.Context, service *Service) error {
	return service.Process().Start(ctx)
}

// get downloads from the service, which may have no connection to its database for a moment after a restart.
func get(ctx context.Context, g Gomega, service *Service, url, token string) []byte {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("X-Secret-Key", token)
	var body []byte
	g.Eventually(func(g Gomega) {
		g.Expect(revive(ctx, service)).To(Succeed())
		response, err := http.DefaultClient.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		body, err = io.ReadAll(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.StatusCode).To(Equal(http.StatusOK), string(body))
	}).WithTimeout(eventually).Should(Succeed())
	return body
}

func checkKubeconfig(t *testing.T, service *Service) {
	g := NewWithT(t)
	const cluster = "00000000-0000-0000-0000-000000000000"
	generate := func() {
		g.Expect(process.WriteFiles(service.file("data", cluster),
			map[string][]byte{"kubeconfig-noingress": []byte("placeholder")})).To(Succeed())
		g.Expect(process.WriteFiles(service.file("data", cluster), map[string][]byte{"install-config.yaml": nil})).To(Succeed())
	}
	generate()
	g.Expect(os.Chtimes(service.file("data", cluster, "install-config.yaml"), time.Time{}, time.Now().Add(-time.Minute))).To(Succeed())
	begin := time.Now()
	time.AfterFunc(2*pollInterval, generate)
	g.Expect(service.PutKubeconfig(t.Context(), cluster, begin, []byte("real"))).To(Succeed())
	content, err := os.ReadFile(service.file("data", cluster, "kubeconfig-noingress"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(Equal("real"))
}
