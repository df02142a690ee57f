// Generates Go messages from a .proto file, without protoc.
//
//	go run ./generate IMPORT_PATH FILE OUTPUT_FOLDER
//
// reads FILE below IMPORT_PATH.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: generate IMPORT_PATH FILE OUTPUT_FOLDER")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(importPath, file, output string) error {
	compiler := protocompile.Compiler{
		Resolver: &protocompile.SourceResolver{ImportPaths: []string{importPath}},
	}
	files, err := compiler.Compile(context.Background(), file)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{file},
		Parameter:      proto.String("M" + file + "=weir/peers/" + filepath.Base(output)),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(files[0])},
	}
	plugin, err := protogen.Options{}.New(request)
	if err != nil {
		return err
	}
	for _, source := range plugin.Files {
		if source.Generate {
			internal_gengo.GenerateFile(plugin, source)
		}
	}
	if err := os.MkdirAll(output, 0o755); err != nil {
		return err
	}
	for _, source := range plugin.Response().File {
		if err := write(filepath.Join(output, filepath.Base(source.GetName())), source.GetContent()); err != nil {
			return err
		}
	}
	return nil
}

// write replaces a file at once, so that two builds at the same time do not disturb each other. It leaves a file
// alone that has this text, so that the next build has nothing to compile.
func write(path, text string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".generated-*")
	if err != nil {
		return err
	}
	if _, err := temporary.WriteString(text); err != nil {
		return err
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
