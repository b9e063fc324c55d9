package hosts

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	bootstrapperNamespace = "openshift-machine-config-operator"
	bootstrapperName      = "node-bootstrapper"
	nodeGroup             = "system:nodes"
	nodeUserPrefix        = "system:node:"
)

// NodeBootstrapper is the identity of a kubelet before it has a certificate: the machine config server gives it
// this service account.
var NodeBootstrapper = rest.ImpersonationConfig{
	UserName: "system:serviceaccount:" + bootstrapperNamespace + ":" + bootstrapperName,
	Groups:   []string{"system:serviceaccounts:" + bootstrapperNamespace, "system:serviceaccounts", "system:authenticated"},
}

// Kubelet returns the identity of the kubelet of a Node.
func Kubelet(node string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{UserName: nodeUserPrefix + node, Groups: []string{nodeGroup, "system:authenticated"}}
}

var errNotApproved = errors.New("a certificate request of the node is not approved yet")

// allowCertificateRequests allows kubelets to request certificates. The second binding replaces the node authorizer of a real
// cluster.
func allowCertificateRequests(ctx context.Context, c client.Client) error {
	for name, binding := range map[string]struct {
		role    string
		subject rbacv1.Subject
	}{
		"system-bootstrap-node-bootstrapper": {
			"system:node-bootstrapper", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: bootstrapperNamespace, Name: bootstrapperName},
		},
		"simulated-node-authorizer": {"system:node", rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: nodeGroup}},
	} {
		object := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: binding.role},
			Subjects:   []rbacv1.Subject{binding.subject},
		}
		if err := c.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("cannot create ClusterRoleBinding %s: %w", name, err)
		}
	}
	return nil
}

// requestClient requests the certificate with which the kubelet may register its Node, and waits for its
// approval. No signer runs in the workload clusters of the laboratory, so the approval decides.
func (h *Host) requestClient(ctx context.Context, inst *installation) bool {
	return h.withWorkload(ctx, inst, func(ctx context.Context, c client.Client) error {
		node, err := h.newNode(ctx, inst)
		if err != nil {
			return err
		}
		template := &x509.CertificateRequest{Subject: NodeSubject(node.Name)}
		if err := h.request(ctx, inst, certificatesv1.KubeAPIServerClientKubeletSignerName, NodeBootstrapper, template); err != nil {
			return err
		}
		return h.approved(ctx, c, inst, certificatesv1.KubeAPIServerClientKubeletSignerName)
	})
}

// renewExpired requests expired certificates again: the kubelet starts as one without any.
func (h *Host) renewExpired(ctx context.Context, inst *installation) bool {
	h.mu.Lock()
	expired := inst.expired
	h.mu.Unlock()
	if !expired {
		return true
	}
	if !h.requestClient(ctx, inst) || !h.requestServing(ctx, inst) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	inst.expired = false
	return true
}

// requestServing requests the serving certificate of the kubelet. A kubelet does not wait for it.
func (h *Host) requestServing(ctx context.Context, inst *installation) bool {
	return h.withWorkload(ctx, inst, func(ctx context.Context, _ client.Client) error {
		node, err := h.newNode(ctx, inst)
		if err != nil {
			return err
		}
		template := &x509.CertificateRequest{Subject: NodeSubject(node.Name), DNSNames: []string{node.Name}}
		for _, address := range node.Status.Addresses {
			if ip := net.ParseIP(address.Address); ip != nil && address.Type == corev1.NodeInternalIP {
				template.IPAddresses = append(template.IPAddresses, ip)
			}
		}
		return h.request(ctx, inst, certificatesv1.KubeletServingSignerName, Kubelet(node.Name), template)
	})
}

// NodeSubject returns the subject of a kubelet's certificates.
func NodeSubject(name string) pkix.Name {
	return pkix.Name{CommonName: nodeUserPrefix + name, Organization: []string{nodeGroup}}
}

// request creates the CertificateSigningRequest for a signer as the user, once.
func (h *Host) request(
	ctx context.Context, inst *installation, signer string, user rest.ImpersonationConfig, template *x509.CertificateRequest,
) error {
	h.mu.Lock()
	requested := inst.requests[signer] != ""
	h.mu.Unlock()
	if requested {
		return nil
	}
	c, err := h.rack.options.WorkloadAs(ctx, inst.cluster.key.Namespace, inst.cluster.key.Name, user)
	if err != nil {
		return err
	}
	name, err := RequestCertificate(ctx, c, signer, template)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	inst.requests[signer] = name
	return nil
}

// RequestCertificate creates the CertificateSigningRequest for a signer of kubelets as the user of the client,
// and returns its name.
func RequestCertificate(ctx context.Context, c client.Client, signer string, template *x509.CertificateRequest) (name string, err error) {
	encoded, err := encodeRequest(template)
	if err != nil {
		return "", err
	}
	usage := certificatesv1.UsageClientAuth
	if signer == certificatesv1.KubeletServingSignerName {
		usage = certificatesv1.UsageServerAuth
	}
	object := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"}}
	object.Spec = certificatesv1.CertificateSigningRequestSpec{
		Request: encoded, SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
	}
	if err := c.Create(ctx, object); err != nil {
		return "", fmt.Errorf("cannot request a certificate of %s: %w", signer, err)
	}
	return object.Name, nil
}

func encodeRequest(template *x509.CertificateRequest) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot create a key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("cannot create a certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// approved returns nil once the request to the signer was approved. A deleted request is created again.
func (h *Host) approved(ctx context.Context, c client.Client, inst *installation, signer string) error {
	h.mu.Lock()
	name := inst.requests[signer]
	h.mu.Unlock()
	object := &certificatesv1.CertificateSigningRequest{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, object)
	if apierrors.IsNotFound(err) {
		h.mu.Lock()
		delete(inst.requests, signer)
		h.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("cannot read CertificateSigningRequest %s: %w", name, err)
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type == certificatesv1.CertificateApproved {
			return nil
		}
	}
	return errNotApproved
}
