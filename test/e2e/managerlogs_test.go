package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/gather"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// managedBy are the components of an archive with the logs of the managers of the laboratory.
var managedBy = map[string]string{
	env.Bootstrap: "bootstrap-openshift-agent", env.ControlPlane: "control-plane-openshift-agent",
	env.Core: "cluster-api", env.Metal3: "metal3",
}

// podOf returns namespace and name of the Pod of a manager.
func podOf(p *process.Process) (namespace, name string) {
	account := strings.Split(p.User, ":")
	return account[2], "manager-0"
}

// managerLogs creates a Deployment with a Pod for each manager, whose processes have none, and returns a reader of their logs.
// The objects are deleted when the spec ends.
func managerLogs(ctx context.Context) gather.LogReader {
	GinkgoHelper()
	files := map[string]string{}
	for name, component := range managedBy {
		manager := laboratory.Env.Manager(name)
		namespace, pod := podOf(manager)
		files[namespace+"/"+pod] = manager.LogPath
		labels := map[string]string{"e2e.example.com/manager": name}
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "manager", Image: "registry.invalid/manager", SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), RunAsNonRoot: ptr.To(true),
					Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
			}},
			ServiceAccountName:           strings.Split(manager.User, ":")[3],
			AutomountServiceAccountToken: ptr.To(false),
		}}
		provider := map[string]string{"cluster.x-k8s.io/provider": strings.Replace(component, "metal3", "infrastructure-metal3", 1)}
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manager", Labels: provider}}
		deployment.Spec = appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
		}
		run := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod, Labels: labels}, Spec: template.Spec}
		Expect(laboratory.Client().Create(ctx, deployment)).To(Succeed())
		Expect(laboratory.Client().Create(ctx, run)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(laboratory.Client().Delete(ctx, deployment)).To(Succeed())
			Expect(laboratory.Client().Delete(ctx, run)).To(Succeed())
		}, NodeTimeout(soon))
		run.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager"}}
		Expect(laboratory.Client().Status().Update(ctx, run)).To(Succeed())
	}
	return func(_ context.Context, namespace, pod string, _ *corev1.PodLogOptions) (io.ReadCloser, error) {
		file, found := files[namespace+"/"+pod]
		if !found {
			return nil, fmt.Errorf("pod %s/%s is no manager of the laboratory", namespace, pod)
		}
		return os.Open(file)
	}
}

// expectLogs checks that an archive has the ends of the logs of all managers.
func expectLogs(files map[string]string) {
	GinkgoHelper()
	for name, component := range managedBy {
		_, pod := podOf(laboratory.Env.Manager(name))
		log := files["logs/"+component+"/"+pod+"/manager.log"]
		Expect(log).To(ContainSubstring("Starting workers"), "log of %s", name)
	}
}
