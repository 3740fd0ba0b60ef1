"""What a tool is. Above: everything that lists, ranks or calls tools. Below: the nouns."""
