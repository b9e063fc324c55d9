package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"image/color"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/gather"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/page"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/reader"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/browser"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// expectGathered checks the archive that "kubectl openshift-agent gather" writes: it has the objects of the cluster and what
// assisted-service reports, and no credentials.
func expectGathered(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	files, gaps := gathered(ctx, cluster)
	names := []any{
		"gather.yaml", "objects/Events.yaml",
		"objects/ClusterImageSet.hive.openshift.io/" + state(ctx, cluster).Installation.Spec.ImageSetRef.Name + ".yaml",
	}
	for _, kind := range lab.Kinds {
		if kind.Kind == "Secret" || kind.Kind == "ConfigMap" || kind.Kind == "Event" {
			continue // these are in one file each
		}
		for _, object := range listAll(ctx, kind, cluster.Namespace) {
			if object.GetNamespace() != "" {
				names = append(names, "objects/"+kind.GroupKind().String()+"/"+object.GetName()+".yaml")
			}
		}
	}
	Expect(slices.Collect(maps.Keys(files))).To(ContainElements(names...))
	for _, machine := range state(ctx, cluster).Machines {
		Expect(files["index.html"]).To(And(ContainSubstring(machine.Name), ContainSubstring(machine.Host.Name)))
	}
	for _, gap := range gaps {
		Expect(gap.Cause).To(Or(Equal(snapshot.NoKind), HavePrefix("assisted-service answers 4")), gap.What)
	}
	if laboratory.Assisted != nil { // the simulated service has no addresses of events
		Expect(files["assisted-service/AgentClusterInstall-"+cluster.Name+"-events.json"]).To(ContainSubstring(`"message"`))
		Expect(files["index.html"]).To(ContainSubstring("Successfully registered cluster"))
	}
	Expect(files["index.html"]).NotTo(ContainSubstring("not met"), "no condition of an installed cluster is a problem")
	expectLogs(files)
	expectDrawn(ctx, cluster, files["index.html"])
	expectNoSecretsIn(ctx, files, cluster.Namespace)
}

// expectDrawn checks that a browser draws the stages of the hosts. Without a browser it checks nothing, unless the
// environment demands one.
func expectDrawn(ctx context.Context, cluster *lab.Cluster, html string) {
	GinkgoHelper()
	program, err := browser.Path()
	if err != nil && !browser.Required() {
		AddReportEntry("not drawn", err.Error())
		return
	}
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(laboratory.Dir(), "gather-"+cluster.Name+".html")
	Expect(os.WriteFile(file, []byte(html), 0o600)).To(Succeed())
	pixels, err := browser.Draw(ctx, program, file)
	Expect(err).NotTo(HaveOccurred())
	for what, c := range map[string]color.RGBA{
		"the boot of a host": {0x8f, 0xb4, 0xe3, 255}, "the installation": {0x7f, 0xbf, 0x9b, 255},
	} {
		Expect(pixels[c]).To(BeNumerically(">", 200), "pixels of "+what)
	}
}

// expectNoSecretsIn searches files for all that the Secrets of a namespace contain.
func expectNoSecretsIn(ctx context.Context, files map[string]string, namespace string) {
	GinkgoHelper()
	secrets := listAll(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, namespace)
	Expect(secrets).NotTo(BeEmpty())
	var values []string
	for _, secret := range secrets {
		Expect(files["objects/Secrets.yaml"]).To(ContainSubstring("name: " + secret.GetName()))
		data, _ := secret.Object["data"].(map[string]any)
		for _, encoded := range data {
			value, err := base64.StdEncoding.DecodeString(encoded.(string))
			Expect(err).NotTo(HaveOccurred())
			if len(value) >= len(lab.PullSecretPassword) && !strings.HasPrefix(string(value), "-----BEGIN CERTIFICATE") { // authorities are public
				values = append(values, string(value), encoded.(string))
			}
		}
	}
	for name, content := range files {
		Expect(lab.Secrets.FindString(content)).To(BeEmpty(), name)
		for _, value := range values {
			Expect(strings.Contains(content, value)).To(BeFalse(), "%s has a value of a Secret", name)
		}
	}
}

// gathered returns the files of the archive of a cluster, and what the archive does not contain.
func gathered(ctx context.Context, cluster *lab.Cluster) (map[string]string, []page.Gap) {
	GinkgoHelper()
	hub, err := reader.NewClient(laboratory.Env.Config(), nil)
	Expect(err).NotTo(HaveOccurred())
	output := filepath.Join(laboratory.Dir(), "gather-"+cluster.Name+".tar.gz")
	gaps, err := gather.Write(ctx, gather.Sources{API: hub, Service: clientOfService(), Logs: managerLogs(ctx)}, gather.Options{
		Namespace: cluster.Namespace, Cluster: cluster.Name, Output: output, Since: time.Hour, LogBytes: 16 << 20, Timeout: soon, Version: "e2e",
		Time: time.Now(),
	})
	Expect(err).NotTo(HaveOccurred())
	return unpacked(output), gaps
}

// clientOfService returns a client that trusts assisted-service.
func clientOfService() *http.Client {
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(laboratory.CA())
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
}

// unpacked returns the files of an archive, without its folder.
func unpacked(archive string) map[string]string {
	GinkgoHelper()
	file, err := os.Open(archive)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	uncompressed, err := gzip.NewReader(file)
	Expect(err).NotTo(HaveOccurred())
	files := map[string]string{}
	for content := tar.NewReader(uncompressed); ; {
		header, err := content.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(content)
		Expect(err).NotTo(HaveOccurred())
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(text)
	}
}
