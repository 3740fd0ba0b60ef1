"""`toolcell demo`: one question answered twice, with direct tools and in Code Mode."""
