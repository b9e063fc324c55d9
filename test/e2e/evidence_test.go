package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/failures"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

func keyOf(object client.Object) types.NamespacedName { return client.ObjectKeyFromObject(object) }

func managedByUser(entry metav1.ManagedFieldsEntry) bool {
	return strings.HasPrefix(entry.Manager, "kubectl")
}

// expectNoPanic reads the managers' metrics.
func expectNoPanic(ctx context.Context) {
	GinkgoHelper()
	for _, manager := range ourManagers() {
		var panics int
		Eventually(func() (err error) { // a manager that was just started has no metrics yet
			panics, err = manager.Panics(ctx)
			return err
		}).WithContext(ctx).Should(Succeed())
		Expect(panics).To(BeZero(), "panics of %s", manager.Name)
	}
}

// expectNoSecretsLogged searches the managers' logs.
func expectNoSecretsLogged() {
	GinkgoHelper()
	for _, manager := range ourManagers() {
		content, err := os.ReadFile(manager.LogPath)
		Expect(err).NotTo(HaveOccurred())
		Expect(lab.Secrets.FindString(string(content))).To(BeEmpty(), "in the log of %s", manager.Name)
	}
}

// expectNoSecretsExposed searches all objects in a namespace for secrets; those of a cluster exist until it is
// deleted.
func expectNoSecretsExposed(ctx context.Context, namespace string) {
	GinkgoHelper()
	for _, kind := range lab.Kinds {
		for _, object := range listAll(ctx, kind, namespace) {
			Expect(lab.SecretIn(&object)).To(BeEmpty(), "in %s %s/%s", kind.Kind, object.GetNamespace(), object.GetName())
		}
	}
}

// dump stores the state at a failure: the dependencies of each cluster, its objects, and the end of the
// managers' logs. The last errors of the managers are reported with the failure.
func dump(ctx context.Context) {
	dir := filepath.Join(laboratory.Dir(), "failures",
		regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(CurrentSpecReport().FullText(), "-"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		GinkgoWriter.Println(err)
		return
	}
	applied.Lock()
	clusters := slices.Clone(applied.clusters)
	applied.Unlock()
	for _, cluster := range clusters {
		if s, err := cluster.State(ctx); err == nil && s.Cluster != nil && !s.Available() {
			GinkgoWriter.Printf("%s:\n%s\n", cluster.Key(), strings.Join(s.Waiting(), "\n"))
			dumpObjects(ctx, dir, cluster)
		}
	}
	for _, manager := range ourManagers() {
		if content, err := os.ReadFile(manager.LogPath); err == nil {
			GinkgoWriter.Printf("end of %s:\n%s\n", manager.LogPath, content[max(0, len(content)-4096):])
		}
	}
	AddReportEntry(failures.Evidence, ReportEntryVisibilityNever, lab.Evidence(ctx, laboratory.Env))
}

func dumpObjects(ctx context.Context, dir string, cluster *lab.Cluster) {
	for _, kind := range lab.Kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := laboratory.Client().List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil || kind.Kind == "Secret" {
			continue
		}
		for i := range list.Items {
			list.Items[i].SetManagedFields(nil)
		}
		content, err := yaml.Marshal(list)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%s-%s.yaml", cluster.Namespace, kind.Kind, kind.Version)), content, 0o600)
		}
		if err != nil {
			GinkgoWriter.Println(err)
		}
	}
}

// events returns the Events in a namespace with a reason.
func events(ctx context.Context, namespace, reason string) []corev1.Event {
	GinkgoHelper()
	list := &corev1.EventList{}
	Expect(laboratory.Client().List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	return slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.Reason != reason })
}

// expectNoProblem checks that neither the status nor an Event of our objects reported a problem of a cluster.
func expectNoProblem(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	Expect(state(ctx, cluster).ControlPlane.Status.ProblemReason).To(BeEmpty())
	list := &corev1.EventList{}
	Expect(laboratory.Client().List(ctx, list, client.InNamespace(cluster.Namespace))).To(Succeed())
	for _, e := range list.Items {
		warning := e.Type == corev1.EventTypeWarning && strings.HasPrefix(e.InvolvedObject.Kind, "OpenshiftAssisted")
		Expect(warning).To(BeFalse(), "%s of %s: %s", e.Reason, e.InvolvedObject.Name, e.Message)
	}
}
