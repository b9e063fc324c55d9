package main

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
)

// maxFile is the size of a file that is read, in bytes: that of a Secret.
const maxFile = 1 << 20

// secretTimeout is the time for a request for a Secret.
const secretTimeout = 30 * time.Second

// registryCredentials returns the credentials for the registry of an image: those of the flags, or those of podman and
// docker.
func (p *plugin) registryCredentials(ctx context.Context, image string, o versionsOptions) (release.Credentials, error) {
	switch {
	case o.pullSecret != "":
		return p.pullSecret(ctx, o.pullSecret)
	case o.pullSecretFile != "":
		return readCredentials(o.pullSecretFile)
	}
	for _, file := range credentialFiles() {
		found, err := readCredentials(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || found.Cover(placeOf(image)) {
			return found, err
		}
	}
	return release.Credentials{}, nil
}

// credentialFiles returns the files with the user's credentials for registries, in the order of containers-auth.json(5).
func credentialFiles() []string {
	if file := os.Getenv("REGISTRY_AUTH_FILE"); file != "" {
		return []string{file}
	}
	home, _ := os.UserHomeDir()
	files := []string{}
	for _, place := range []struct{ variable, otherwise, file string }{
		{"XDG_RUNTIME_DIR", "", "containers/auth.json"},
		{"XDG_CONFIG_HOME", filepath.Join(home, ".config"), "containers/auth.json"},
		{"DOCKER_CONFIG", filepath.Join(home, ".docker"), "config.json"},
	} {
		folder := os.Getenv(place.variable)
		if folder == "" {
			folder = place.otherwise
		}
		if filepath.IsAbs(folder) { // without a home directory it is not
			files = append(files, filepath.Join(folder, place.file))
		}
	}
	return files
}

// readCredentials reads credentials from a file. The error contains the path, and nothing of the contents.
func readCredentials(path string) (release.Credentials, error) {
	content, err := readFile(path)
	if err != nil {
		return release.Credentials{}, err
	}
	credentials, err := release.ParseCredentials(content)
	if err != nil {
		return release.Credentials{}, fmt.Errorf("file %s: %w", path, err)
	}
	return credentials, nil
}

// readFile reads a file of at most maxFile bytes.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(content) > maxFile:
		return nil, fmt.Errorf("file %s has more than %d MiB", path, maxFile>>20)
	}
	return content, nil
}

// readAuthorities reads PEM certificates from a file. Without a path it returns "".
func readAuthorities(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	content, err := readFile(path)
	if err != nil {
		return "", err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(content) {
		return "", fmt.Errorf("file %s has no PEM certificate", path)
	}
	return string(content), nil
}

// pullSecret reads credentials from a Secret in the namespace of the user. The error contains nothing of its data.
func (p *plugin) pullSecret(ctx context.Context, secretName string) (release.Credentials, error) {
	h, err := p.connect()
	if err != nil {
		return release.Credentials{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	// The scheme has no Secrets: no other command reads them.
	secret := &unstructured.Unstructured{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := h.Get(ctx, h.keyIn(secretName), secret); err != nil {
		return release.Credentials{}, fmt.Errorf("cannot read the pull secret: %w", err)
	}
	key := fmt.Sprintf("key %s of Secret %s/%s", corev1.DockerConfigJsonKey, h.namespace, secretName)
	encoded, found, err := unstructured.NestedString(secret.Object, "data", corev1.DockerConfigJsonKey)
	if err != nil || !found {
		return release.Credentials{}, fmt.Errorf("%s does not exist. Create the Secret with type %s", key, corev1.SecretTypeDockerConfigJson)
	}
	content, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return release.Credentials{}, fmt.Errorf("the value of %s is not base64", key)
	}
	credentials, err := release.ParseCredentials(content)
	if err != nil {
		return release.Credentials{}, fmt.Errorf("%s: %w", key, err)
	}
	return credentials, nil
}
